"""What strangers, impostors and malformed answers do to a round of agents: nothing. No torch."""

import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import grpc
import numpy as np
import pytest
from ring_of_agents import FLOAT, KEYS, LENGTH, SPEC, Ring, offer, reasons
from rogues import ROGUES, in_turns, rogue

from bezoar import BezoarError
from bezoar.agents import Neighbours, Peer, ask, make_key
from bezoar.agents._asker import connected
from bezoar.agents._messages import PIECE, Kind, Miss, Question, answer
from bezoar.agents._server import ASK, ON_A_CONNECTION, PULL, SERVICE, Server


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
