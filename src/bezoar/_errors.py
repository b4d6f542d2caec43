"""The errors that users' mistakes raise."""


class BezoarError(ValueError):
    """Something a user gave cannot be used.

    The message names the field or argument, what was found, and what is allowed.
    """


class LostRankError(BezoarError):
    """A process that trains together with others cannot reach them any more."""
