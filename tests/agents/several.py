"""Several agents in threads of this process, each with its own server, key and folder."""

import threading
from dataclasses import replace

from bezoar.agents import Peer, Setting, make_key, run_agent
from bezoar.agents._ports import free_ports
from bezoar.experiments import network_of


def settings_of(spec, folder, **options):
    """A setting for every agent of a run, by name."""
    names = network_of(spec).names
    keys = {name: make_key(name) for name in names}
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    peers = {n: Peer(n, keys[n].certificate, f"127.0.0.1:{ports[n]}") for n in names}
    common = {"patience": 20.0, "wait": 20.0, "workers": 1, **options}
    return {
        n: Setting(spec, n, keys[n], peers, peers[n].address, folder / n, **common) for n in names
    }


class Several:
    """Agents that run until they are joined."""

    def __init__(self, settings):
        self.histories, self.errors = {}, {}
        self._threads = {name: self._thread(each) for name, each in settings.items()}

    def _thread(self, setting):
        def work():
            try:
                self.histories[setting.name] = run_agent(setting)
            except Exception as error:
                self.errors[setting.name] = error

        thread = threading.Thread(target=work, name=setting.name, daemon=True)
        thread.start()
        return thread

    def start(self, setting):
        """One more."""
        self._threads[setting.name] = self._thread(setting)

    def join(self):
        """What every agent measured, by name."""
        for thread in self._threads.values():
            thread.join()
        if self.errors:
            raise next(iter(self.errors.values()))
        return self.histories


def train(spec, folder, **options):
    """Train every agent of a run; what each measured, by name."""
    return Several(settings_of(spec, folder, **options)).join()


def pinned(setting, **peers):
    """A setting that knows some peers otherwise."""
    return replace(setting, peers={**setting.peers, **peers})
