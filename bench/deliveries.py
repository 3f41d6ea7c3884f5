"""Sends of mesh-delivery: accepted by the broker, fingerprinted, and from end to end with a broker that dies.

- *accept*: `accept` as the adapter calls it, a first send to a queue, on an embedded PostgreSQL server: fingerprint,
  one transaction of record, message and fan-out. *bare* is a transaction of the same two inserts, record and message,
  with psycopg as it comes, on the same server. They take turns, and in turn go first. The number that counts is the
  ratio of their medians: at least 0.5. *over HTTP* is the same through the broker's socket, a connection for each.
- *fingerprint*: the seven fields of a request, its meta canonicalised; *bare* is `hashlib` over the same bytes and over
  the same body, in turns as well. Requests have bodies of 1 KiB and a meta of three members.
- *end to end*: a daemon takes the messages in, its outbox synced for each, and delivers them to a broker that is a
  process of its own. The broker is killed in the middle, and another one goes on with its database. Then each message
  is `done`, and the database has one record and one message of each. The ratio is to the slowest stage alone, which is
  *take in* (the outbox without a broker) or *over HTTP* (the broker without an outbox).

A slow disk hides everything behind the commit, and lifts the first ratio: compare ratios at like medians of *bare*.

Run: `python -m bench.deliveries [--batches N] [--batch N] [--messages N]`
"""

from __future__ import annotations

import hashlib
import http.client
import multiprocessing
import signal
import sqlite3
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from bench.turns import Taken, arguments, in_turns, median, show
from holdfast.reference_impl.answers import Accepted, Ok
from holdfast.reference_impl.mesh_delivery.entry import MeshDelivery
from holdfast.reference_impl.mesh_delivery.fingerprint import fingerprints as reference_fingerprints
from holdfast.reference_impl.mesh_delivery.launch import launch
from holdfast.reference_impl.mesh_delivery.service import Service
from holdfast.reference_impl.mesh_delivery.terms import CONTRACT
from holdfast.reference_impl.postgres import with_database, with_settings
from holdfast.reference_impl.postgres_names import session_database
from holdfast.reference_impl.session import OpenRequest, Session, StateWanted, SurfaceWanted
from holdfast.specs import load_contract
from holdfast.specs.strictjson import canonical, loads
from holdfast.vectors.spelling import encoded

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MESH = str(uuid.UUID(int=1))
MEMBER = "ab" * 32
QUEUE = "q"
WARM_UP = 50
TARGET = 0.5
# The rows that one round of the daemon finds due.
ROUND = 500
# After an outage rows wait for as long as this, by the frozen clock.
LATER = timedelta(seconds=400)

BARE_RECORD = (
    "INSERT INTO mesh.client_message_dedupe (mesh_id, client_message_id, broker_message_id, request_fingerprint, "
    "sender, destination_kind, destination_ref, first_seen_at, expires_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
BARE_MESSAGE = (
    "INSERT INTO mesh.message_queue (id, mesh_id, sender, destination_kind, destination_ref, reply_to, priority, meta, "
    "body, created_at, client_message_id) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)


def body_of(number: int) -> bytes:
    """A body of its own, of one KiB."""
    return hashlib.sha256(str(number).encode()).digest() * 32


META = b'{"b":[1,2,3],"a":"text","c":{"d":null}}'


def request(number: int) -> dict[str, Any]:
    """One request of its own."""
    return {
        "envelope_version": 1,
        "destination_kind": "queue",
        "destination_ref": QUEUE,
        "meta": encoded(META),
        "body": encoded(body_of(number)),
    }


def send(name: str, number: int) -> dict[str, Any]:
    """The arguments of `accept`."""
    named = {"mesh_id": MESH, "sender": MEMBER, "client_message_id": f"{name}-{number}"}
    return {**named, "request": request(number)}


@contextmanager
def opened(
    implementation: MeshDelivery, workdir: Path, config: Mapping[str, str], state: StateWanted
) -> Iterator[Session]:
    """A session in a folder."""
    session = implementation.open(OpenRequest(state, SurfaceWanted.READY, workdir, NOW, config))
    try:
        yield session
    finally:
        session.close()


class Client:
    """Sends to the broker's socket, each through a connection of its own, as the daemon does."""

    def __init__(self, endpoint: str) -> None:
        route = load_contract(CONTRACT).methods["accept"].route
        assert route is not None
        self._place, self._route = urlsplit(endpoint), route

    def send(self, name: str, number: int) -> int:
        """The status of the answer."""
        args = send(name, number)
        named = {header: args.pop(member) for member, header in self._route.headers.items()}
        connection = http.client.HTTPConnection(self._place.hostname or "", self._place.port)
        with closing(connection):
            connection.request(self._route.method, self._route.path, canonical(args), named)
            response = connection.getresponse()
            loads(response.read())
            return response.status


def _serve(workdir: Path, config: Mapping[str, str], state: StateWanted, pipe: Pipe) -> None:
    """The process of a broker: it says where it listens, and waits to be killed."""
    with opened(MeshDelivery(), workdir, {**config, "transport": "http"}, state) as session:
        if state is StateWanted.FRESH:
            made = session.call("make_mesh", {"mesh_id": MESH, "members": [MEMBER], "topics": [], "queues": [QUEUE]})
            assert isinstance(made, Ok), made
        assert isinstance(session, Service)
        pipe.send(session.endpoint)
        signal.pause()


class Broker:
    """A broker in a process of its own."""

    def __init__(self, workdir: Path, config: Mapping[str, str], state: StateWanted) -> None:
        here, there = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(
            target=_serve, args=(workdir, config, state, there)
        )
        self._process.start()
        self.endpoint = str(here.recv())

    def kill(self) -> None:
        """As a crash does."""
        self._process.kill()
        self._process.join()


def accepted(broker: Path, config: Mapping[str, str], endpoint: str, *, batches: int, batch: int) -> tuple[Taken, ...]:
    """Seconds of each send: by the function, by the bare transaction, and over HTTP."""
    client = Client(endpoint)

    def over_http(number: int) -> None:
        assert client.send("http", number) == 201

    with opened(MeshDelivery(), broker, config, StateWanted.EXISTING) as session, bare_side(broker, config) as bare:

        def accept(number: int) -> None:
            answer = session.call("accept", send("function", number))
            assert isinstance(answer, Accepted), answer

        return tuple(in_turns([accept, bare, over_http], warm_up=WARM_UP, batches=batches, batch=batch))


def database_of(broker: Path, config: Mapping[str, str]) -> str:
    """The DSN of the session's database."""
    template = str(psycopg.conninfo.conninfo_to_dict(config["dsn"])["dbname"])
    return with_database(config["dsn"], session_database(template, broker))


@contextmanager
def bare_side(broker: Path, config: Mapping[str, str]) -> Iterator[Any]:
    """A transaction of the two inserts and nothing else."""
    dsn = with_settings(database_of(broker, config), synchronous_commit="on")
    with psycopg.connect(dsn, autocommit=True) as connection:

        def insert(number: int) -> None:
            name, identity = f"bare-{number}", uuid.UUID(int=(1 << 100) + number)
            fingerprint = hashlib.sha256(name.encode()).digest()
            record = (MESH, name, identity, fingerprint, MEMBER, "queue", QUEUE, NOW, NOW + timedelta(days=30))
            row = (identity, MESH, MEMBER, "queue", QUEUE, "", "next", META, body_of(number), NOW, name)
            with connection.transaction():
                connection.execute(BARE_RECORD, record)
                connection.execute(BARE_MESSAGE, row)

        yield insert


def fingerprints(*, batches: int, batch: int) -> tuple[Taken, ...]:
    """Seconds of each fingerprint, and of the bare hashes of the same bytes."""
    fingerprinter = reference_fingerprints()
    total = WARM_UP + batches * batch
    requests = [request(number) for number in range(total)]
    bodies = [body_of(number) for number in range(total)]
    joined = [fingerprinter.joined(fingerprinter.fields(each)) for each in requests]

    def bare(number: int) -> None:
        hashlib.sha256(bodies[number]).hexdigest()
        hashlib.sha256(joined[number]).hexdigest()

    return tuple(
        in_turns(
            [lambda number: fingerprinter.fingerprint(requests[number]), bare],
            warm_up=WARM_UP,
            batches=batches,
            batch=batch,
        )
    )


def take_in(session: Session, name: str, numbers: range) -> float:
    """Seconds of a send into the outbox."""
    began = time.perf_counter()
    for number in numbers:
        args = send(name, number)
        del args["sender"]
        answer = session.call("send", args)
        assert isinstance(answer, Accepted), answer
    return (time.perf_counter() - began) / len(numbers)


def end_to_end(scratch: Path, broker_dir: Path, config: Mapping[str, str], broker: Broker, messages: int) -> float:
    """Seconds of a message from `send` to `done`, with the broker killed in the middle. It ends `broker`."""
    daemon_dir = scratch / "daemon"
    daemon_dir.mkdir()
    settings = {**config, "member": MEMBER}
    began = time.perf_counter()
    brokers = [broker]
    state = StateWanted.FRESH
    halfway = messages // 2 // ROUND * ROUND
    for first in range(0, messages, ROUND):
        with opened(MeshDelivery(), daemon_dir, {**settings, "broker": brokers[-1].endpoint}, state) as session:
            state = StateWanted.EXISTING
            take_in(session, "e2e", range(first, min(messages, first + ROUND)))
            dying = threading.Timer(0.3, brokers[-1].kill) if first == halfway else None
            if dying is not None:
                dying.start()
            _deliver(session)
            if dying is not None:
                dying.join()
        if dying is not None:
            brokers.append(Broker(broker_dir, config, StateWanted.EXISTING))
    with opened(MeshDelivery(), daemon_dir, {**settings, "broker": brokers[-1].endpoint}, state) as session:
        session.set_clock(NOW + LATER)
        _deliver(session)
    took = (time.perf_counter() - began) / messages
    brokers[-1].kill()
    _check(daemon_dir, database_of(broker_dir, config), messages)
    return took


def _deliver(session: Session) -> None:
    answer = session.call("deliver", {})
    assert isinstance(answer, Accepted), answer


def _check(daemon_dir: Path, dsn: str, messages: int) -> None:
    """Nothing lost and nothing twice."""
    with closing(sqlite3.connect(daemon_dir / CONTRACT / "outbox.db")) as outbox:
        done = dict(outbox.execute("SELECT client_message_id, broker_message_id FROM outbox WHERE status = 'done'"))
        (tried,) = outbox.execute("SELECT count(*) FROM outbox WHERE attempts > 1").fetchone()
    with psycopg.connect(dsn) as connection:
        named = "client_message_id LIKE 'e2e-%'"
        records = connection.execute(
            f"SELECT client_message_id, broker_message_id::text FROM mesh.client_message_dedupe WHERE {named}"
        ).fetchall()
        rows = connection.execute(
            f"SELECT client_message_id, id::text FROM mesh.message_queue WHERE {named}"
        ).fetchall()
    assert len(done) == messages, f"{len(done)} of {messages} are done"
    assert len(records) == len(rows) == messages, f"{len(records)} records and {len(rows)} messages of {messages}"
    assert dict(records) == dict(rows) == done
    print(f"{messages} messages are done once each, {tried} of them after more than one attempt")


def main() -> None:
    """Print the rates and the ratios."""
    options = arguments(__doc__, batches=100, batch=10, messages=20000)
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as folder:
        scratch = Path(folder)
        scratch.chmod(0o711)
        workdir = scratch / "broker"
        workdir.mkdir()
        launched = launch({}, parent=scratch)
        try:
            config = launched.ready.config
            broker = Broker(workdir, config, StateWanted.FRESH)
            ours, bare, over_http = accepted(
                workdir, config, broker.endpoint, batches=options.batches, batch=options.batch
            )
            show({"accept": ours, "bare": bare, "accept over HTTP": over_http}, f"target {TARGET} for bare")
            hashed, bare_hashed = fingerprints(batches=options.batches, batch=options.batch)
            show({"fingerprint": hashed, "bare hashes": bare_hashed})
            alone_dir = scratch / "alone"
            alone_dir.mkdir()
            with opened(MeshDelivery(), alone_dir, {**config, "member": MEMBER}, StateWanted.FRESH) as session:
                alone = take_in(session, "alone", range(min(options.messages, 1000)))
            whole = end_to_end(scratch, workdir, config, broker, options.messages)
        finally:
            launched.stop()
    stages = {"take in": alone, "over HTTP": median(over_http)}
    slowest = max(stages, key=stages.__getitem__)
    for name, taken in (*stages.items(), ("end to end", whole)):
        print(f"{name:<18} {1 / taken:8.0f} a second   {taken * 1e6:7.0f} us")
    print(f"end to end         {stages[slowest] / whole:8.2f} of the rate of the slowest stage alone ({slowest})")


if __name__ == "__main__":
    main()
