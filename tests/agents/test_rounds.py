"""Rounds between agents without training: who hears whom, and who is missing why. No torch."""

import threading
import time
from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest
from ring_of_agents import FLOAT, KEYS, LENGTH, Ring, offer, reasons
from rogues import Cable

from bezoar import BezoarError
from bezoar.agents import Neighbours, Offer
from bezoar.agents._messages import Miss


def test_everybody_hears_everybody_in_every_round():
    with Ring("abc") as ring:
        for name in "abc":
            ring.start(name)
        for number in range(1, 6):
            for name, (heard, reached) in ring.round(number).items():
                assert reached == number
                assert sorted(heard) == sorted(set("abc") - {name})
                for other, vector in heard.items():
                    np.testing.assert_array_equal(vector, np.full(LENGTH, ord(other) + number))
        assert not any(t.misses for each in ring.agents.values() for t in each.tallies.values())
        assert ring.agents["a"].received == ring.agents["a"].sent


@pytest.mark.parametrize("seconds", [1e10, inf])
def test_patience_may_have_no_end(seconds):
    with Ring(patience=seconds, wait=seconds) as ring:
        for name in "ab":
            ring.start(name)
        guard = threading.Timer(100, ring.stack.close)  # should they wait for ever
        guard.start()
        for number in (1, 2):
            found = ring.round(number)
            assert {name: list(heard) for name, (heard, _) in found.items()} == {
                "a": ["b"],
                "b": ["a"],
            }
        ring.agents["a"].linger(2)
        guard.cancel()


@pytest.mark.parametrize("option", ["patience", "wait"])
@pytest.mark.parametrize("seconds", [0, -1.0, nan, "3"])
def test_times_that_cannot_be_waited_are_refused(option, seconds):
    with Ring(**{option: seconds}) as ring, pytest.raises(BezoarError, match=f"{option}: expected"):
        ring.start("a")


def test_a_message_may_differ_by_receiver():
    with Ring("abc") as ring:
        for name in "abc":
            ring.start(name)
        lie = Offer(np.zeros(LENGTH, FLOAT), {"b": np.ones(LENGTH, FLOAT)})
        sender = threading.Thread(target=ring.agents["a"].exchange, args=(1, lie))
        sender.start()
        found = ring.round(1, "bc")
        sender.join()
        assert found["b"][0]["a"].tolist() == [1.0] * LENGTH
        assert found["c"][0]["a"].tolist() == [0.0] * LENGTH


def test_the_first_round_waits_for_those_who_have_not_begun():
    with Ring() as ring:
        ring.start("a")
        first = threading.Thread(target=ring.round, args=(1, "a"))
        first.start()
        time.sleep(0.3)
        ring.start("b")
        heard, _ = ring.round(1, "b")["b"]
        first.join()
        assert list(heard) == ["a"]
        assert ring.agents["a"].tallies["b"].rounds == 1


def test_who_comes_late_does_not_wait_for_the_dead():
    with Ring("abc", patience=0.05, wait=0.2) as ring:
        for name in "ab":
            ring.start(name)
        for number in range(1, 6):
            ring.round(number, "a")
        ring.agents["b"].close()
        ring.options["wait"] = 30.0
        late = ring.start("c")
        before = time.monotonic()
        late.exchange(1, offer(0.0))
        assert time.monotonic() - before < 10
        assert reasons(late, "a") == {Miss.BEHIND: 1}


def test_who_is_dead_is_missing_and_welcome_back():
    with Ring("abc") as ring:
        for name in "abc":
            ring.start(name)
        ring.round(1)
        ring.agents["c"].close()
        before = time.monotonic()
        for number in (2, 3):
            assert list(ring.round(number, "ab")["a"][0]) == ["b"]
        assert time.monotonic() - before < 2 * ring.options["patience"]  # nobody waits for the dead
        assert reasons(ring.agents["a"], "c") == {Miss.UNREACHABLE: 2}
        ring.start("c")
        number = 4
        while not ring.agents["a"].tallies["c"].last > 3:
            ring.round(number)
            number += 1
            assert number < 100


def test_who_is_late_is_waited_for_less_and_less_until_it_asks():
    with Ring("abc") as ring:
        for name in "abc":
            ring.start(name)
        ring.round(1)
        seconds = []
        for number in (2, 3, 4):
            before = time.monotonic()
            ring.round(number, "ab")
            seconds.append(time.monotonic() - before)
        assert seconds[2] < seconds[0]
        assert reasons(ring.agents["a"], "c") == {Miss.LATE: 3}
        assert ring.agents["a"].tallies["c"].late == 3
        heard, _ = ring.round(4, "c")["c"]
        assert sorted(heard) == ["a", "b"]
        assert ring.agents["a"].tallies["c"].late == 0
        assert sorted(ring.round(5)["a"][0]) == ["b", "c"]


def test_who_lags_jumps_to_where_more_than_half_of_its_neighbours_are():
    with Ring("abc", patience=0.05, wait=0.2) as ring:
        for name in "abc":
            ring.start(name)
        for number in range(1, 9):
            ring.round(number, "ab")
        heard, reached = ring.round(2, "c")["c"]
        assert heard == {}
        assert reached == 7  # next it does round 8, whose messages are still there
        assert sorted(ring.round(8, "c")["c"][0]) == ["a", "b"]


def test_one_of_two_neighbours_cannot_make_an_agent_skip_rounds():
    with Ring("abc", patience=0.05, wait=0.2) as ring:
        for name in "abc":
            ring.start(name)
        ring.round(1)
        ring.agents["b"].offers.put(10**9, offer(0.0))
        ring.agents["b"].offers.put(10**9 + 1, offer(0.0))
        ring.agents["b"].offers.put(10**9 + 2, offer(0.0))
        heard, reached = ring.round(2, "ac")["a"]
        assert (list(heard), reached) == (["c"], 2)
        assert reasons(ring.agents["a"], "b") == {Miss.BEHIND: 1}


def test_who_is_slow_to_shake_hands_is_waited_for():
    """A busy machine may take longer for that than gRPC gives to an attempt."""
    with Ring(wait=30.0) as ring:
        cable = Cable(ring.peers["b"].address)
        ring.stack.callback(cable.close)
        cable.cut()
        agent = ring.start("a", b=replace(ring.peers["b"], address=cable.address))
        ring.start("b")
        slow = threading.Timer(4.0, cable.mend)
        slow.start()
        assert list(ring.round(1)["a"][0]) == ["b"]
        slow.join()
        assert not reasons(agent, "b")


def test_who_never_shakes_hands_is_late():
    """It is frozen; nothing is wrong with its certificate."""
    with Ring(patience=0.3, wait=4.0) as ring:
        cable = Cable(ring.peers["b"].address)
        ring.stack.callback(cable.close)
        cable.cut()
        agent = ring.start("a", b=replace(ring.peers["b"], address=cable.address))
        before = time.monotonic()
        ring.round(1)
        assert time.monotonic() - before < 2 * ring.options["wait"]
        ring.round(2)
        assert reasons(agent, "b") == {Miss.LATE: 2}


def test_another_spec_is_told():
    with Ring() as ring:
        ring.start("a")
        other = Neighbours(
            KEYS["b"],
            ring.peers["b"].address,
            [ring.peers["a"]],
            bytes(32),
            FLOAT,
            LENGTH,
            patience=0.1,
            wait=1.0,
        )
        ring.stack.callback(other.close)
        ring.round(1, "a")
        assert reasons(ring.agents["a"], "b") == {Miss.SPEC: 1}
