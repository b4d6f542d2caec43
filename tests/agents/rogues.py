"""Neighbours with a right key that send what they like, and networks that are cut."""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import numpy as np

from bezoar.agents._messages import Kind, Miss, Question, answer
from bezoar.agents._server import ASK, PULL, SERVICE


@contextmanager
def rogue(key, peers, answers, **options) -> Iterator[None]:
    """A neighbour at its address that answers what ``answers(question, context)`` gives."""
    known = b"".join(peer.certificate for peer in peers.values())
    credentials = grpc.ssl_server_credentials([(key.private, key.certificate)], known, True)
    with ThreadPoolExecutor(4) as threads:
        server = grpc.server(threads, **options)
        handler = grpc.unary_stream_rpc_method_handler(answers)
        service = grpc.method_handlers_generic_handler(SERVICE, {PULL: handler, ASK: handler})
        server.add_generic_rpc_handlers((service,))
        assert server.add_secure_port(peers[key.name].address, credentials)
        server.start()
        try:
            yield
        finally:
            server.stop(None).wait()


def _endless(vector, number, spec, context):
    yield from answer(Kind.MESSAGE, number, spec, vector)
    while context.is_active():
        yield bytes(64)


def _with_nan(vector):
    return np.where(np.arange(vector.size) == 3, np.nan, vector).astype(vector.dtype)


#: What a rogue sends, by why it is missing then: made from a message, its round and its spec.
ROGUES: dict[Miss, Callable[..., Iterator[bytes]]] = {
    Miss.SHORT: lambda v, k, s, _: iter([b"".join(answer(Kind.MESSAGE, k, s, v))[:-3]]),
    Miss.LONG: _endless,
    Miss.STALE: lambda v, k, s, _: answer(Kind.MESSAGE, k - 1, s, v),
    Miss.TYPE: lambda v, k, s, _: answer(Kind.MESSAGE, k, s, v.astype("<f8")[: v.size // 2]),
    Miss.SHAPE: lambda v, k, s, _: answer(Kind.MESSAGE, k, s, v[1:]),
    Miss.NOT_FINITE: lambda v, k, s, _: answer(Kind.MESSAGE, k, s, _with_nan(v)),
    Miss.MALFORMED: lambda *_: iter([b"\x80\x04cos\nsystem\n" + bytes(100)]),  # a pickle
    Miss.SPEC: lambda v, k, s, _: answer(Kind.MESSAGE, k, bytes(32), v),
}


def in_turns(vector, turns):
    """Answers that go through ``turns``, round by round; ``None`` is a right message."""

    def answers(content, context):
        question = Question.unpack(content)
        number, spec = question.round, question.spec
        wrong = turns[(number - 1) % len(turns)]
        if wrong is None:
            return answer(Kind.MESSAGE, number, spec, vector)
        return ROGUES[wrong](vector, number, spec, context)

    return answers


class Cable:
    """A TCP connection through this process that can be cut: then nothing arrives any more."""

    def __init__(self, target):
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self._whole = threading.Event()
        self._whole.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._ends = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        self._whole.clear()

    def mend(self):
        self._whole.set()

    def close(self):
        self.mend()
        for end in self._ends:
            end.close()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
                self._ends.append(near)
                self._whole.wait()
                far = socket.create_connection(self._target)
            except OSError:
                return
            self._ends.append(far)
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source, target):
        try:
            while content := source.recv(1 << 16):
                self._whole.wait()
                target.sendall(content)
        except OSError:
            pass
        source.close()
        target.close()
