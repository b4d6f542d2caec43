"""Ports of this machine."""

import itertools
import os
import socket

from bezoar._errors import BezoarError

#: Where ports are looked for. The system gives ports above to whoever connects to somebody: such a
#: port may be free now and taken a moment later, before the agent that it was meant for listens.
RANGE = range(10_000, 32_768)

#: Every process begins elsewhere and goes on from there, so that two do not choose the same.
_next = itertools.count(os.getpid() * 1009)


def read_address(field: str, found: str) -> tuple[str, int]:
    """The host and the port in ``HOST:PORT``.

    Raises:
        BezoarError: naming the field, where there is no port, or none that can be.
    """
    host, _, port = found.rpartition(":")
    if not port.isdecimal() or len(port) > 5 or int(port) > 65_535:
        raise BezoarError(f"{field}: expected HOST:PORT, with a port up to 65535, found {found!r}")
    return host, int(port)


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens at.

    Raises:
        BezoarError: where there are not so many.
    """
    tried = (RANGE[number % len(RANGE)] for number in itertools.islice(_next, len(RANGE)))
    found = list(itertools.islice(filter(_is_free, tried), count))
    if len(found) < count:
        raise BezoarError(
            f"agents: {count} of them need a port each on this machine; {len(found)} ports from "
            f"{RANGE[0]} to {RANGE[-1]} are free"
        )
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
