"""Partitions over sockets: they come in any way and are hashed in order, or there is no digest."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from holdfast.vectors.jcs.es6 import transport
from holdfast.vectors.jcs.es6.job import Digest, digest
from holdfast.vectors.jcs.es6.stream import Partition, StreamLostError, made, plan
from holdfast.vectors.jcs.es6.transport import Collector

HOST = "127.0.0.1"
HEAD = struct.Struct(">32sIQQQ32sQ")
LINES = 60_000
PARTITIONS = tuple(plan(LINES, partition_blocks=2_000))


def collected(collector: Collector, partitions: Sequence[Partition] = PARTITIONS) -> Digest:
    return digest(partitions, collector.take)


def sent(sender: Callable[[Partition], None], partitions: Sequence[Partition]) -> ThreadPoolExecutor:
    pool = ThreadPoolExecutor(3)
    for partition in partitions:
        pool.submit(sender, partition)
    pool.shutdown(wait=False)
    return pool


def beginning(sender: Callable[[Partition], None]) -> socket.socket:
    """A worker that sends only the beginning of partition 0."""
    assert isinstance(sender, partial)
    dying = socket.create_connection(sender.keywords["address"])
    dying.sendall(HEAD.pack(sender.keywords["token"], 0, 5, 0, 0, bytes(32), 500) + b"0,0\n8")
    return dying


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector(HOST, stalled_s=10.0) as listening:
        yield listening


@pytest.mark.parametrize(
    ("order", "more"),
    [(1, {}), (-1, {}), (1, {"waiting": 1})],
    ids=["from several workers", "backwards", "a driver with little room lets the others wait"],
)
def test_partitions_are_digested_in_order(order: int, more: Any) -> None:
    with Collector(HOST, stalled_s=10.0, **more) as collector:
        sent(collector.sender(HOST), PARTITIONS[::order])
        assert collected(collector) == digest(PARTITIONS)


def test_a_worker_that_dies_can_be_replaced(collector: Collector) -> None:
    sender = collector.sender(HOST)
    with beginning(sender) as dying:
        threading.Timer(0.3, dying.shutdown, [socket.SHUT_RDWR]).start()
        threading.Timer(0.6, sent, [sender, PARTITIONS]).start()
        assert collected(collector) == digest(PARTITIONS)


def test_a_partition_is_taken_from_one_worker_only(collector: Collector) -> None:
    sender = collector.sender(HOST)
    with ThreadPoolExecutor() as pool:
        twice = [pool.submit(sender, PARTITIONS[1]) for _ in range(2)]
        sent(sender, [PARTITIONS[0], *PARTITIONS[2:]])
        assert collected(collector) == digest(PARTITIONS)
        # The other one may come when nobody listens any more.
        collector.close()
        assert sorted(isinstance(each.exception(10), OSError) for each in twice) == [False, True]


def test_a_stranger_is_not_listened_to(collector: Collector) -> None:
    sender: Any = collector.sender(HOST)
    with ThreadPoolExecutor() as pool:
        stranger = pool.submit(partial(sender, token=bytes(32)), PARTITIONS[0])
        done = pool.submit(collected, collector)
        assert isinstance(stranger.exception(10), OSError)
        sent(sender, PARTITIONS)
        assert done.result(20) == digest(PARTITIONS)


def test_who_sends_a_byte_now_and_then_is_waited_for_no_longer_than_a_silent_one(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "_HELLO_S", 0.5)
    sender: Any = collector.sender(HOST)
    over = threading.Event()

    def dribble(stranger: socket.socket) -> None:
        while not over.wait(0.05):
            with contextlib.suppress(OSError):
                stranger.send(b"x")

    with socket.create_connection(sender.keywords["address"]) as stranger, ThreadPoolExecutor() as pool:
        pool.submit(dribble, stranger)
        done = pool.submit(collected, collector)
        sent(sender, PARTITIONS)
        try:
            # All of a head by the byte takes five seconds.
            assert done.result(4) == digest(PARTITIONS)
        finally:
            over.set()


def test_a_head_in_two_pieces_is_a_workers(collector: Collector) -> None:
    sender: Any = collector.sender(HOST)
    found = made(PARTITIONS[0])
    head = HEAD.pack(
        sender.keywords["token"],
        0,
        found.lines,
        found.end.candidates,
        found.end.lines,
        found.end.state,
        len(found.text),
    )
    with socket.create_connection(sender.keywords["address"]) as worker, ThreadPoolExecutor() as pool:
        worker.sendall(head[:40])
        done = pool.submit(collected, collector)
        time.sleep(0.1)
        worker.sendall(head[40:] + found.text)
        sent(sender, PARTITIONS[1:])
        assert done.result(20) == digest(PARTITIONS)


@pytest.mark.parametrize("begins", [False, True])
def test_silence_and_a_text_that_ends_in_the_middle_give_no_digest(begins: bool) -> None:
    with Collector(HOST, stalled_s=0.5) as collector:
        if begins:
            beginning(collector.sender(HOST)).close()
        with pytest.raises(StreamLostError, match="nothing came from any worker"):
            collected(collector)


def test_stopping_the_workers_gives_no_digest(collector: Collector) -> None:
    threading.Timer(0.2, collector.close).start()
    with pytest.raises(StreamLostError, match="the workers were stopped"):
        collected(collector)


def test_a_worker_is_not_done_before_the_driver_has_everything() -> None:
    with Collector(HOST, waiting=0) as collector, ThreadPoolExecutor() as pool:
        waiting = pool.submit(collector.sender(HOST), PARTITIONS[2])
        taking = pool.submit(collector.take, PARTITIONS[0])
        with pytest.raises(TimeoutError):
            waiting.result(0.3)
        collector.close()
        assert isinstance(taking.exception(10), StreamLostError)
        assert isinstance(waiting.exception(10), OSError)
