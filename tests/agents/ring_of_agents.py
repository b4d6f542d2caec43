"""Agents without training that exchange numbers on a small ring. No torch."""

import threading
from contextlib import ExitStack

import numpy as np

from bezoar.agents import Neighbours, Offer, Peer, make_key
from bezoar.agents._ports import free_ports

SPEC, LENGTH, FLOAT = bytes(range(32)), 50, np.dtype("<f4")
KEYS = {name: make_key(name) for name in "abc"}


def offer(value):
    return Offer(np.full(LENGTH, value, FLOAT))


class Ring:
    """Agents that all hear each other; closed at the end."""

    def __init__(self, names="ab", keys=KEYS, **options):
        self.stack, self.agents, self.keys = ExitStack(), {}, keys
        self.options = {"patience": 0.3, "wait": 5.0, **options}
        self.peers = {
            name: Peer(name, keys[name].certificate, f"127.0.0.1:{port}")
            for name, port in zip(names, free_ports(len(names)), strict=True)
        }

    def start(self, name, **known):
        others = {**self.peers, **known}
        others = [peer for other, peer in others.items() if other != name]
        address, key = self.peers[name].address, self.keys[name]
        made = Neighbours(key, address, others, SPEC, FLOAT, LENGTH, **self.options)
        self.stack.callback(made.close)
        self.agents[name] = made
        return made

    def round(self, number, names=None):
        """Let some agents exchange at the same time; what each heard."""
        found = {}

        def work(name):
            found[name] = self.agents[name].exchange(number, offer(ord(name) + number))

        threads = [threading.Thread(target=work, args=name) for name in names or self.agents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()


def reasons(agent, peer):
    return dict(agent.tallies[peer].misses)
