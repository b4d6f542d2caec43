"""Checks of what models are made for."""

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
