"""``bezoar schema``."""

from bezoar.cli._screen import print_json
from bezoar.experiments._schema import sweep_schema


def schema() -> None:
    """Print the JSON schema of sweep documents."""
    print_json(sweep_schema())
