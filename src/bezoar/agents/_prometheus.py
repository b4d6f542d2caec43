"""An agent's status for Prometheus."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bezoar._errors import BezoarError
from bezoar.agents._extra import needed
from bezoar.agents._ports import read_address

if TYPE_CHECKING:
    from bezoar.agents._records import Status

#: What is served: its name in the status, its kind, and what it is.
SERVED = (
    ("round", "Gauge", "The last round that is done."),
    ("accuracy", "Gauge", "Accuracy of the agent's model on its own test data."),
    ("test_loss", "Gauge", "Mean cross-entropy of its model on its own test data."),
    ("bytes_sent", "Counter", "Bytes of messages sent."),
    ("bytes_received", "Counter", "Bytes of messages received."),
    ("jumps", "Counter", "How often it skipped rounds because it lagged."),
)


@contextmanager
def serve_metrics(where: str | None, status: "Callable[[], Status]") -> Iterator[None]:
    """Serve the numbers of a status for Prometheus at ``HOST:PORT``, if asked to."""
    if where is None:
        yield
        return
    client: Any = needed("prometheus_client")
    host, port = read_address("prometheus", where)
    host = host.strip("[]") or "127.0.0.1"  # brackets are around an address of IPv6
    registry = client.CollectorRegistry()
    registry.register(_Collector(status))
    try:
        server, thread = client.start_http_server(port, host, registry)
    except OSError as error:
        raise BezoarError(f"prometheus: {where} cannot be used: {error.strerror}") from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Collector:
    """Reads the status when it is asked for."""

    def __init__(self, status: "Callable[[], Status]") -> None:
        self._status = status

    def collect(self) -> Iterator[Any]:
        core: Any = needed("prometheus_client.core")
        status: Any = self._status()
        agent = (status["name"],)
        for name, kind, about in SERVED:
            if status[name] is not None:
                make = core.GaugeMetricFamily if kind == "Gauge" else core.CounterMetricFamily
                family = make(f"bezoar_{name}", about, labels=("agent",))
                family.add_metric(agent, float(status[name]))
                yield family
        misses = core.CounterMetricFamily(
            "bezoar_misses",
            "Rounds in which a neighbour was missing, by the reason.",
            labels=("agent", "peer", "reason"),
        )
        for peer, told in status["peers"].items():
            for reason, count in told["misses"].items():
                misses.add_metric((*agent, peer, reason), count)
        yield misses
