"""An agent's status for Prometheus."""

import socket
import urllib.request

import pytest

from bezoar import BezoarError
from bezoar.agents._ports import free_ports
from bezoar.agents._prometheus import serve_metrics


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_metrics_for_prometheus(host):
    if host == "[::1]" and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    [port] = free_ports(1)
    status = {"name": "b", "round": 7, "accuracy": 0.5, "test_loss": None, "bytes_sent": 10}
    status |= {"bytes_received": 20, "jumps": 1, "peers": {"c": {"misses": {"late": 3}}}}
    where = f"{host}:{port}"
    with serve_metrics(where, lambda: status), urllib.request.urlopen(f"http://{where}") as answer:
        text = answer.read().decode()
    assert 'bezoar_round{agent="b"} 7.0' in text
    assert 'bezoar_misses_total{agent="b",peer="c",reason="late"} 3.0' in text
    assert "test_loss" not in text


def test_a_port_for_prometheus_that_cannot_be_is_told():
    with (
        pytest.raises(
            BezoarError, match=r"prometheus: expected HOST:PORT, .* found 'localhost:70000'"
        ),
        serve_metrics("localhost:70000", dict),
    ):
        pass
