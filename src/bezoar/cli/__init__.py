"""The command line: it reads options, calls the library, and prints the pages it gives."""

from bezoar.cli._main import main

__all__ = ["main"]
