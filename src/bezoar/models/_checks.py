"""What the makers of models refuse."""

from bezoar._errors import BezoarError


def check_image(image_shape: tuple[int, ...], least: int = 1) -> tuple[int, int, int]:
    """Refuse what is not ``(channels, height, width)`` with ``least`` pixels in each direction."""
    if len(image_shape) != 3:
        raise BezoarError(
            "image_shape: this model needs images [channels, height, width], found samples of "
            f"shape {list(image_shape)}"
        )
    channels, height, width = image_shape
    if min(height, width) < least:
        raise BezoarError(
            f"image_shape: this model needs {least} × {least} pixels, found {height} × {width}"
        )
    return channels, height, width


def check_count(option: str, found: int, least: int = 1) -> None:
    """Refuse what is not a whole number of ``least`` or more."""
    if not isinstance(found, int) or isinstance(found, bool) or found < least:
        raise BezoarError(f"{option}: expected a whole number from {least}, found {found!r}")
