"""What is not installed with bezoar itself: ``bezoar[cluster]``."""

import os
from importlib import import_module
from typing import Any

from bezoar._errors import BezoarError


def needed(module: str) -> Any:
    """A module of ``bezoar[cluster]``.

    Raises:
        BezoarError: with what to install, where it is not there.
    """
    # What gRPC would print of every failed handshake is told as an event or an error.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise BezoarError(
            f"{package}: agents in processes of their own need it, and it is not installed here; "
            "'pip install bezoar[cluster]' installs it"
        ) from None
