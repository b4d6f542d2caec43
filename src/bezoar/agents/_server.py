"""The side of an agent that answers: gRPC with mutual TLS.

Two methods take and give raw bytes. ``Pull`` gives neighbours the message of a round. ``Ask`` gives
the agent's owner, and observers that it names, its status or its results.
"""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from bezoar._errors import BezoarError
from bezoar.agents._extra import needed
from bezoar.agents._keys import Key, Peer, same_certificate
from bezoar.agents._messages import NO_DECOMPRESSION, PIECE, Kind, Question, answer
from bezoar.agents._offers import Offer, Offers
from bezoar.agents._ports import read_address

SERVICE, PULL, ASK = "bezoar.Agent", "Pull", "Ask"

#: Bytes that a question may have; ours have fewer.
LONGEST_QUESTION = 1024

#: How many answers one neighbour or observer may wait for at a time: one, and one that it gave up.
AT_A_TIME = 2

#: How many questions may be under way on one connection. Those that are refused count, too, and
#: every one takes memory until then.
ON_A_CONNECTION = 64

#: Seconds that answers under way may go on at the end, and those beyond in which gRPC should have
#: ended; it does so at once.
GRACE, ENDING = 0.5, 5.0

#: Seconds that an answer is waited for if the question does not say.
PATIENCE = 60.0

OPTIONS = (
    ("grpc.max_receive_message_length", LONGEST_QUESTION),
    ("grpc.max_concurrent_streams", ON_A_CONNECTION),
    NO_DECOMPRESSION,
    ("grpc.so_reuseport", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 2_000),
    ("grpc.keepalive_permit_without_calls", 1),
)


class Server:
    """Answers neighbours, and whoever may ask how it goes.

    Args:
        key: the agent's own key.
        listen: ``HOST:PORT``; port 0 is any that is free.
        neighbours: who may have messages.
        observers: who may ask for status and results, beside the agent's owner.
        spec: the hash of what is trained.
        offers: the messages.
        documents: what may be asked for, by name; made when it is asked for.
        heard: is told the name of a neighbour that asks.

    Attributes:
        port: where it listens.
        sent: the bytes of messages that were sent, by neighbour.
    """

    def __init__(
        self,
        key: Key,
        listen: str,
        neighbours: Collection[Peer],
        observers: Collection[Peer],
        spec: bytes,
        offers: Offers,
        documents: Mapping[str, Callable[[], bytes]],
        heard: Callable[[str], Any],
    ) -> None:
        grpc: Any = needed("grpc")
        self._grpc, self._spec, self._offers = grpc, spec, offers
        self._neighbours = tuple(neighbours)
        self._trusted = (*observers, Peer(key.name, key.certificate))
        self._documents, self._heard = documents, heard
        self.sent: Counter[str] = Counter()
        self._waiting: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        known = b"\n".join(peer.certificate for peer in (*self._neighbours, *self._trusted))
        credentials = grpc.ssl_server_credentials(
            [(key.private, key.certificate)], root_certificates=known, require_client_auth=True
        )
        # Everybody may occupy as many threads as they may have questions, and no more; one thread
        # is left that refuses.
        threads = AT_A_TIME * (len(self._neighbours) + len(self._trusted)) + 1
        read_address("listen", listen)  # gRPC would take another port where there is none
        self._server = grpc.server(ThreadPoolExecutor(threads, "bezoar-answers"), options=OPTIONS)
        self._server.add_generic_rpc_handlers((self._handlers(),))
        try:
            self.port = self._server.add_secure_port(listen, credentials)
        except RuntimeError:
            self.port = 0
        if not self.port:
            raise BezoarError(f"listen: {listen!r} cannot be used; give HOST:PORT with a free port")
        self._server.start()

    def close(self) -> None:
        """Stop answering; answers that are under way may go on for a moment."""
        self._offers.close()
        self._server.stop(GRACE).wait(GRACE + ENDING)

    def _handlers(self) -> Any:
        stream = self._grpc.unary_stream_rpc_method_handler
        return self._grpc.method_handlers_generic_handler(
            SERVICE, {PULL: stream(self._pull), ASK: stream(self._ask)}
        )

    def _caller(self, context: Any, among: Collection[Peer]) -> str:
        """Who asks: the peer whose very certificate was shown."""
        shown = context.auth_context().get("x509_pem_cert", [b""])[0]
        for peer in among:
            if same_certificate(peer.certificate, shown):
                return peer.name
        denied = self._grpc.StatusCode.PERMISSION_DENIED
        context.abort(denied, "this certificate may not ask for this")
        raise AssertionError("abort raises")

    def _pull(self, content: bytes, context: Any) -> Iterator[bytes]:
        name = self._caller(context, self._neighbours)
        with self._in_turn(PULL, name, context):
            yield from self._answer(name, content, context)

    @contextmanager
    def _in_turn(self, method: str, name: str, context: Any) -> Iterator[None]:
        """Refuse a question of somebody who waits for as many answers as allowed."""
        with self._lock:
            self._waiting[method, name] += 1
            many = self._waiting[method, name] > AT_A_TIME
        try:
            if many:
                code = self._grpc.StatusCode.RESOURCE_EXHAUSTED
                context.abort(code, f"more than {AT_A_TIME} questions at a time")
            yield
        finally:
            with self._lock:
                self._waiting[method, name] -= 1

    def _answer(self, name: str, content: bytes, context: Any) -> Iterator[bytes]:
        try:
            question = Question.unpack(content)
        except ValueError as error:
            context.abort(self._grpc.StatusCode.INVALID_ARGUMENT, str(error))
        if question.spec != self._spec:
            yield from answer(Kind.OTHER_SPEC, self._offers.newest, self._spec)
            return
        self._heard(name)
        left = context.time_remaining()
        found = self._offers.wait(question.round, PATIENCE if left is None else min(left, PATIENCE))
        if found is None:
            code = self._grpc.StatusCode.DEADLINE_EXCEEDED
            context.abort(code, f"round {question.round} is not there yet")
        elif isinstance(found, Offer):
            for piece in answer(Kind.MESSAGE, question.round, self._spec, found.to(name)):
                self.sent[name] += len(piece)
                yield piece
            self._offers.taken(name, question.round)
        else:
            yield from answer(Kind.GONE, found, self._spec)

    def _ask(self, content: bytes, context: Any) -> Iterator[bytes]:
        name = self._caller(context, self._trusted)
        with self._in_turn(ASK, name, context):
            what = content.decode("ascii", errors="replace")
            if what not in self._documents:
                allowed = ", ".join(self._documents)
                code = self._grpc.StatusCode.INVALID_ARGUMENT
                context.abort(code, f"{what!r} is not known; allowed: {allowed}")
            document = self._documents[what]()
            for start in range(0, len(document), PIECE):
                yield document[start : start + PIECE]
