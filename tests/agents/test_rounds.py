"""Rounds between agents without training: who hears whom, and who is missing why. No torch."""

import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import grpc
import numpy as np
import pytest
from rogues import ROGUES, Cable, in_turns, rogue

from bezoar import BezoarError
from bezoar.agents import Neighbours, Offer, Peer, ask, make_key
from bezoar.agents._asker import connected
from bezoar.agents._messages import PIECE, Kind, Miss, Question, answer
from bezoar.agents._ports import free_ports
from bezoar.agents._server import ASK, ON_A_CONNECTION, PULL, SERVICE, Server

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


# Certificates


def expired(name):
    return make_key(name, days=1, now=datetime.now(UTC) - timedelta(days=3))


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(make_key("b"), id="unpinned, of the same name"),
        pytest.param(make_key("c"), id="unpinned"),
        pytest.param(KEYS["c"], id="that of another neighbour"),
    ],
)
def test_a_wrong_certificate_is_missing_at_once(shown):
    with Ring("abc") as ring:
        agent = ring.start("a")
        ring.keys = {**KEYS, "b": shown}
        ring.start("b")
        ring.keys = KEYS
        ring.start("c")
        before = time.monotonic()
        other = threading.Thread(target=ring.agents["c"].exchange, args=(1, offer(1.0)))
        other.start()
        heard, _ = agent.exchange(1, offer(0.0))
        other.join()
        assert time.monotonic() - before < ring.options["wait"] / 2
        assert list(heard) == ["c"]
        assert reasons(agent, "b") == {Miss.CERTIFICATE: 1}
        if shown is not KEYS["c"]:  # nor does it hear anybody
            assert ring.agents["b"].exchange(1, offer(0.0))[0] == {}


def test_an_expired_certificate_is_missing():
    keys = {"a": KEYS["a"], "b": expired("b")}
    with Ring(keys=keys) as ring:
        ring.start("a")
        ring.start("b")
        found = ring.round(1)
        assert found["a"][0] == found["b"][0] == {}
        assert reasons(ring.agents["a"], "b") == {Miss.CERTIFICATE: 1}
        assert reasons(ring.agents["b"], "a") == {Miss.CERTIFICATE: 1}


def test_a_valid_certificate_that_claims_another_name_is_missing():
    """The file says that it is b's, but the certificate in it is c's, and c is there."""
    with Ring("abc", wait=0.3) as ring:
        ring.start("c")
        claimed = Peer("b", KEYS["c"].certificate, ring.peers["c"].address)
        agent = ring.start("a", b=claimed)
        assert "b" not in agent.exchange(1, offer(0.0))[0]
        assert reasons(agent, "b") == {Miss.CERTIFICATE: 1}


def test_only_the_owner_and_observers_are_told_the_status():
    observer = make_key("ward")
    told = {"status": lambda: b"{}"}
    with Ring(documents=told, observers=[Peer("ward", observer.certificate)]) as ring:
        ring.start("a")
        at = ring.peers["a"]
        assert ask(KEYS["a"], at, "status", 5, 100) == b"{}"
        assert ask(observer, at, "status", 5, 100) == b"{}"
        with pytest.raises(BezoarError, match="may not ask for this"):
            ask(KEYS["b"], at, "status", 5, 100)
        with pytest.raises(BezoarError, match="does not tell its status"):
            ask(make_key("a"), at, "status", 5, 100)
        with pytest.raises(BezoarError, match="not known; allowed: status"):
            ask(KEYS["a"], at, "models", 5, 100)
        with pytest.raises(BezoarError, match="more than 1 bytes"):
            ask(KEYS["a"], at, "status", 5, 1)


def test_an_observer_that_reads_no_answer_takes_no_thread_of_a_neighbour():
    observer = make_key("ward")
    told = {"results": lambda: bytes(8 << 20)}  # more than waits in buffers
    with Ring(documents=told, observers=[Peer("ward", observer.certificate)]) as ring:
        ring.start("a").offers.put(1, offer(3.0))
        with connected(observer, ring.peers["a"], PIECE + 1024) as channel:
            asked = [channel.unary_stream(f"/{SERVICE}/{ASK}")(b"results") for _ in range(8)]
            codes = []
            for call in asked:
                try:
                    next(call)
                except grpc.RpcError as error:
                    codes.append(error.code())
            assert codes == [grpc.StatusCode.RESOURCE_EXHAUSTED] * 6
            assert list(ring.start("b").exchange(1, offer(0.0))[0]) == ["a"]
            for call in asked:
                call.cancel()


# Neighbours that send something else


def test_whatever_a_neighbour_sends_it_is_missing_in_that_round_only():
    turns = [None, *ROGUES, None]
    with Ring(patience=0.1) as ring:
        ring.stack.enter_context(
            rogue(KEYS["b"], ring.peers, in_turns(np.ones(LENGTH, FLOAT), turns))
        )
        agent = ring.start("a")
        heard = [list(agent.exchange(k, offer(0.0))[0]) for k in range(1, len(turns) + 1)]
        assert heard[0] == heard[-1] == ["b"]
        assert not any(heard[1:-1])
        assert reasons(agent, "b") == dict.fromkeys(ROGUES, 1)
        assert Counter(event.what for event in agent.told()[1]) == Counter(map(str, ROGUES))


def test_pieces_larger_than_the_message_are_not_taken():
    with Ring(patience=0.1) as ring:
        ring.stack.enter_context(rogue(KEYS["b"], ring.peers, lambda *_: iter([bytes(PIECE)])))
        agent = ring.start("a")
        agent.exchange(1, offer(0.0))
        assert reasons(agent, "b") == {Miss.LONG: 1}
        assert agent.received < 2 * LENGTH * FLOAT.itemsize


def test_what_a_neighbour_has_compressed_is_not_unpacked():
    def answers(content, _):
        question = Question.unpack(content)
        return answer(Kind.MESSAGE, question.round, question.spec, np.zeros(LENGTH, FLOAT))

    with Ring(patience=0.1) as ring:
        gzip = grpc.Compression.Gzip
        ring.stack.enter_context(rogue(KEYS["b"], ring.peers, answers, compression=gzip))
        agent = ring.start("a")
        agent.exchange(1, offer(0.0))
        assert reasons(agent, "b") == {Miss.MALFORMED: 1}


def test_what_a_neighbour_says_is_one_line_without_commands_for_a_terminal():
    def refuse(_, context):
        context.abort(grpc.StatusCode.UNAVAILABLE, "\x1b[2Jno\r\nround 7: all is well" + "!" * 5000)

    with Ring(patience=0.1) as ring:
        ring.stack.enter_context(rogue(KEYS["b"], ring.peers, refuse))
        agent = ring.start("a")
        agent.exchange(1, offer(0.0))
        told = agent.told()[1][0].told
        assert told.startswith(" [2Jno  round 7: all is well!!!")
        assert len(told) == 500
        with pytest.raises(BezoarError) as found:
            ask(KEYS["a"], ring.peers["b"], "status", 5, 100)
        assert str(found.value).isprintable()


def test_few_questions_wait_on_a_connection(monkeypatch):
    pools, go_on = [], threading.Event()

    def pool(*given):
        pools.append(ThreadPoolExecutor(*given))
        return pools[-1]

    monkeypatch.setattr("bezoar.agents._server.ThreadPoolExecutor", pool)
    monkeypatch.setattr(Server, "_caller", lambda *_: go_on.wait() and "b")
    with Ring() as ring, connected(KEYS["b"], ring.peers["a"], PIECE) as channel:
        ring.start("a")
        pull = channel.unary_stream(f"/{SERVICE}/{PULL}")
        asked = [pull(Question(1, SPEC).pack()) for _ in range(200)]
        time.sleep(0.5)
        waiting = pools[0]._work_queue.qsize()
        go_on.set()
        for call in asked:
            call.cancel()
    assert 0 < waiting <= ON_A_CONNECTION


def test_a_server_survives_malformed_and_many_questions():
    with Ring() as ring:
        agent = ring.start("a")
        agent.offers.put(1, offer(3.0))
        rng = np.random.default_rng(0)
        with connected(KEYS["b"], ring.peers["a"], 1 << 20) as channel:
            pull = channel.unary_stream(f"/{SERVICE}/{PULL}")
            for size in rng.integers(0, 1050, 200):
                with pytest.raises(grpc.RpcError):
                    list(pull(rng.bytes(size), timeout=5))
            waiting = [pull(Question(5, SPEC).pack(), timeout=1.0) for _ in range(50)]
            codes = Counter()
            for call in waiting:
                with pytest.raises(grpc.RpcError):
                    list(call)
                codes[call.code()] += 1
            assert codes[grpc.StatusCode.RESOURCE_EXHAUSTED] >= 40
        assert list(ring.start("b").exchange(1, offer(0.0))[0]) == ["a"]


def test_addresses_that_cannot_be_used_are_told():
    waiting = {"patience": 0.1, "wait": 0.1}
    with pytest.raises(BezoarError, match=r"listen: 'nowhere\.invalid:1' cannot be used"):
        Neighbours(KEYS["a"], "nowhere.invalid:1", [], SPEC, FLOAT, LENGTH, **waiting)
    with pytest.raises(BezoarError, match=r"listen: expected HOST:PORT, .* found '127\.0\.0\.1'"):
        Neighbours(KEYS["a"], "127.0.0.1", [], SPEC, FLOAT, LENGTH, **waiting)
    with pytest.raises(BezoarError, match=r"listen: .*up to 65535, found '127\.0\.0\.1:70000'"):
        Neighbours(KEYS["a"], "127.0.0.1:70000", [], SPEC, FLOAT, LENGTH, **waiting)
    peer = Peer("b", KEYS["b"].certificate, "b.example.org")
    with pytest.raises(BezoarError, match=r"b: address: expected HOST:PORT, .*'b\.example\.org'"):
        Neighbours(KEYS["a"], "127.0.0.1:0", [peer], SPEC, FLOAT, LENGTH, **waiting)
    peer = replace(peer, address="")
    with pytest.raises(BezoarError, match="b: address: expected HOST:PORT, found nothing"):
        Neighbours(KEYS["a"], "127.0.0.1:0", [peer], SPEC, FLOAT, LENGTH, **waiting)


def test_transport_needs_no_torch():
    code = "import sys, bezoar.agents._neighbours; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
