"""Ports for agents that begin to listen later."""

import socket
from pathlib import Path

import pytest

from bezoar import BezoarError
from bezoar.agents import _ports
from bezoar.agents._ports import free_ports


def test_ports_differ_from_each_other_and_from_those_before():
    found = [*free_ports(50), *free_ports(50)]
    assert len(set(found)) == 100


def test_a_port_that_is_taken_is_passed_over(monkeypatch):
    with socket.socket() as taken:
        [port] = free_ports(1)
        taken.bind(("127.0.0.1", port))
        monkeypatch.setattr(_ports, "_next", iter(range(port - _ports.RANGE[0], 10**9)))
        assert port not in free_ports(10)


def test_nobody_who_connects_is_given_one_of_them():
    given = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if not given.exists():
        pytest.skip("only Linux tells which ports it gives to those who connect")
    first, _ = map(int, given.read_text().split())
    if first < _ports.RANGE.stop:
        pytest.skip("this machine gives other ports than is usual to those who connect")
    assert all(port < first for port in free_ports(100))


def test_too_many_are_refused():
    with pytest.raises(BezoarError, match=r"agents: 30000 .* ports from 10000 to 32767 are free"):
        free_ports(30_000)
