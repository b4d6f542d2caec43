"""Several agents in threads of this process, each with its own server, key and folder."""

import threading
import time

from bezoar.agents import Peer, Setting, make_key, run_agent
from bezoar.agents._ports import free_ports
from bezoar.experiments import network_of

#: Seconds that anything in these tests may take on a busy machine.
LONGEST = 300.0


def settings_of(spec, folder, **options):
    """A setting for every agent of a run, by name."""
    names = network_of(spec).names
    keys = {name: make_key(name) for name in names}
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    peers = {n: Peer(n, keys[n].certificate, f"127.0.0.1:{ports[n]}") for n in names}
    common = {"patience": 120.0, "wait": 120.0, "workers": 1, **options}
    return {
        n: Setting(spec, n, keys[n], peers, peers[n].address, folder / n, **common) for n in names
    }


def until(condition):
    """Wait until something is so, which must not take for ever."""
    end = time.monotonic() + LONGEST
    while not condition():
        assert time.monotonic() < end, f"it is not so after {LONGEST} s"
        time.sleep(0.02)


class Several:
    """Agents that run in threads until they are joined."""

    def __init__(self, settings):
        self.histories, self.errors, self._threads = {}, {}, []
        for setting in settings.values():
            self.start(setting)

    def start(self, setting):
        """One more agent."""
        self.call(setting.name, lambda: run_agent(setting))

    def call(self, name, work):
        """Whatever an agent of this name does."""

        def caught():
            try:
                self.histories[name] = work()
            except BaseException as error:
                self.errors[name] = error

        self._threads.append(threading.Thread(target=caught, name=name, daemon=True))
        self._threads[-1].start()

    def until(self, condition):
        """Wait until something is so, unless an agent fails."""
        until(lambda: self.errors or condition())
        self._raise()

    def join(self):
        """What every agent measured, by name; at once where one fails, for whom others wait."""
        self.until(lambda: not any(thread.is_alive() for thread in self._threads))
        self._raise()
        return self.histories

    def _raise(self):
        if self.errors:
            raise next(iter(self.errors.values()))


def train(spec, folder, **options):
    """Train every agent of a run; what each measured, by name."""
    return Several(settings_of(spec, folder, **options)).join()
