"""The command line: a thin shell over the library."""

from bezoar.cli._main import main

__all__ = ["main"]
