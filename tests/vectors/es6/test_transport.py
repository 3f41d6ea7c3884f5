"""Partitions over sockets: they come in any way and are hashed in order, or there is no digest."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from holdfast.vectors.jcs.es6.digest import Digest, digest, digest_here
from holdfast.vectors.jcs.es6.stream import Partition, StreamLostError, plan
from holdfast.vectors.jcs.es6.transport import Collector, Sender

HOST = "127.0.0.1"
LINES = 60_000
PARTITIONS = tuple(plan(LINES, partition_blocks=2_000))


def collected(collector: Collector, partitions: Sequence[Partition] = PARTITIONS) -> Digest:
    return digest(partitions, lambda partition: collector.pieces(partition.index))


def sent(sender: Sender, partitions: Sequence[Partition]) -> ThreadPoolExecutor:
    pool = ThreadPoolExecutor(3)
    for partition in partitions:
        pool.submit(sender, partition)
    pool.shutdown(wait=False)
    return pool


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector(HOST, stalled_s=10.0) as listening:
        yield listening


def test_partitions_from_several_workers_are_digested_in_order(collector: Collector) -> None:
    sent(collector.sender(HOST), PARTITIONS)
    assert collected(collector) == digest_here(LINES)


def test_partitions_that_come_backwards_are_digested_in_order(collector: Collector) -> None:
    sent(collector.sender(HOST), PARTITIONS[::-1])
    assert collected(collector) == digest_here(LINES)


def test_a_driver_with_little_room_lets_the_others_wait() -> None:
    with Collector(HOST, stalled_s=10.0, waiting_bytes=1) as collector:
        sent(collector.sender(HOST), PARTITIONS)
        assert collected(collector) == digest_here(LINES)


def test_a_worker_that_dies_can_be_replaced(collector: Collector) -> None:
    sender = collector.sender(HOST)
    with socket.create_connection((HOST, sender.port)) as dying:
        dying.sendall(struct.pack(">32sI", sender.token, 0) + struct.pack(">I", 5) + b"0,0\n8")
        threading.Timer(0.3, dying.shutdown, [socket.SHUT_RDWR]).start()
        threading.Timer(0.6, sent, [sender, PARTITIONS]).start()
        assert collected(collector) == digest_here(LINES)


def test_a_partition_is_taken_from_one_worker_only(collector: Collector) -> None:
    sender = collector.sender(HOST)
    with ThreadPoolExecutor() as pool:
        assert pool.submit(sender, PARTITIONS[1]).result(10) == 1
        with pytest.raises(OSError):  # noqa: PT011  (how a closed socket shows differs)
            pool.submit(sender, PARTITIONS[1]).result(10)


def test_a_stranger_is_not_listened_to(collector: Collector) -> None:
    stranger = replace(collector.sender(HOST), token=bytes(32))
    with pytest.raises(OSError):  # noqa: PT011
        stranger(PARTITIONS[0])
    sent(collector.sender(HOST), PARTITIONS)
    assert collected(collector) == digest_here(LINES)


def test_a_worker_whose_text_ends_in_the_middle_gives_no_digest() -> None:
    with Collector(HOST, stalled_s=0.5) as collector:
        sender = collector.sender(HOST)
        with socket.create_connection((HOST, sender.port)) as dying:
            dying.sendall(struct.pack(">32sI", sender.token, 0) + struct.pack(">I", 500) + b"0,0\n")
        with pytest.raises(StreamLostError, match="nothing came from any worker"):
            collected(collector)


def test_silence_gives_no_digest() -> None:
    with (
        Collector(HOST, stalled_s=0.2) as collector,
        pytest.raises(StreamLostError, match="nothing came from any worker"),
    ):
        collected(collector)


def test_stopping_the_workers_gives_no_digest(collector: Collector) -> None:
    threading.Timer(0.2, collector.close).start()
    with pytest.raises(StreamLostError, match="the workers were stopped"):
        collected(collector)


def test_a_worker_is_not_done_before_the_driver_has_everything() -> None:
    with Collector(HOST, waiting_bytes=0) as collector, ThreadPoolExecutor() as pool:
        waiting = pool.submit(collector.sender(HOST), PARTITIONS[2])
        with pytest.raises(TimeoutError):
            waiting.result(0.3)
        collector.close()
        with pytest.raises(OSError):  # noqa: PT011
            waiting.result(10)
