"""Agents for real: every agent a process, on one machine or on several.

Here belongs what an agent needs to train with neighbours that it reaches over a network: keys and
certificates, the format of messages, the server that answers and the client that asks, the rounds
with their faults, and what an agent writes down. What an agent computes is the affair of
:mod:`bezoar.training`; how its rule is applied, that of :mod:`bezoar.exchange`. What is needed
beyond bezoar itself is installed by ``bezoar[cluster]``, and imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bezoar.agents._keys import (
    Key,
    Peer,
    key_file,
    make_key,
    read_key,
    read_peers,
    write_key,
    write_peer,
)

if TYPE_CHECKING:
    from bezoar.agents._agent import Setting, run_agent
    from bezoar.agents._asker import ask
    from bezoar.agents._local import LocalRun, agent_folder, run_local
    from bezoar.agents._neighbours import Event, Neighbours
    from bezoar.agents._offers import Offer
    from bezoar.agents._records import Status, read_status
    from bezoar.agents._results import Result, collect, note, read_result, together

#: What needs torch or numpy is imported when it is first asked for.
_HOMES = {
    "_agent": ("Setting", "run_agent"),
    "_asker": ("ask",),
    "_local": ("LocalRun", "agent_folder", "run_local"),
    "_neighbours": ("Event", "Neighbours"),
    "_offers": ("Offer",),
    "_records": ("Status", "read_status"),
    "_results": ("Result", "collect", "note", "read_result", "together"),
}

__all__ = [
    "Event",
    "Key",
    "LocalRun",
    "Neighbours",
    "Offer",
    "Peer",
    "Result",
    "Setting",
    "Status",
    "agent_folder",
    "ask",
    "collect",
    "key_file",
    "make_key",
    "note",
    "read_key",
    "read_peers",
    "read_result",
    "read_status",
    "run_agent",
    "run_local",
    "together",
    "write_key",
    "write_peer",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"bezoar.agents.{home}"), name)
    raise AttributeError(f"module 'bezoar.agents' has no attribute {name!r}")
