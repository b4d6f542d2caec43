"""The command line.

Here belongs a thin shell: options are read, the other rooms are called, and what they return is
printed, as tables and pages for people or as JSON for machines. Nothing is computed or laid out.
"""

from bezoar.cli._main import main

__all__ = ["main"]
