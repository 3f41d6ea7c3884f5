"""No two objects have a key or a nonce in common, of any type and in any store."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import base64url, from_base64url
from holdfast.conformance.suites.hx_sync.permutations import ObjectBuilder, at
from holdfast.vectors.derive import derive
from holdfast.vectors.hx_sync.objects.drafts import VAULT_KEY
from holdfast.vectors.hx_sync.objects.format import object_key, parts_of


@dataclass(frozen=True, slots=True)
class Published:
    """An object as it lies in the store: what it is, for words, its type, and its bytes as base64url."""

    what: str
    type: str
    data: str


# A count of ones this number of standard deviations from the half is no accident: chance does it once in 10^11 bits.
_DEVIATIONS = 7
# With this number of spare rows, too few rows are independent by accident once in 2^64 times.
_SPARE = 8
# A length of incompressible bytes that is larger than any buffer.
_LONG = 90_000
# So few objects show nothing of a distribution.
_FEWEST = 24


def apart(bench: Bench, algorithm: str) -> None:
    """Two sessions publish alike; of all objects no two share anything that must be random for each."""
    found: list[Published] = []
    for store in ("one store", "another store"):
        with bench.session(workers=2, config={"algorithm": algorithm}) as session:
            found += _all_types(bench, session, store)
    judge(bench, found, algorithm)


def judge(bench: Bench, found: Sequence[Published], algorithm: str) -> None:
    """All that was published is as the contract has it, has nothing in common, and is drawn from a whole space."""
    for each in found:
        wrong = derive("hx.published", {"object": each.data, "type": each.type})
        if wrong:
            bench.report("wrong_reason", f"{each.what} is not as the contract has it", received=", ".join(wrong))
        parts = derive("hx.parts", each.data)
        if parts["algorithm"] != algorithm:
            received = str(parts["algorithm"])
            bench.report("wrong_reason", f"{each.what} has another algorithm", expected=algorithm, received=received)
    if derive("hx.common", [each.data for each in found]):
        _tell(bench, found)
    if len(found) >= _FEWEST:
        taken = [parts_of(from_base64url(each.data)) for each in found]
        master = bytes.fromhex(VAULT_KEY)
        drawn(bench, [parts.wrap_nonce for parts in taken], "nonces of wraps")
        drawn(bench, [parts.nonce for parts in taken], "nonces of payloads")
        drawn(bench, [object_key(parts, master) for parts in taken], "keys of objects")


def drawn(bench: Bench, values: Sequence[bytes], what: str) -> None:
    """Every bit is one as often as not, is so beside the value before it, and none follows from the others.

    The first shows constants, the second counters and clocks, the third fewer bits than there seem to be.
    """
    rows = [int.from_bytes(value, "big") for value in values]
    bits = 8 * len(values[0])
    steps = [one ^ other for one, other in itertools.pairwise(rows)]
    for told, sample in ((what, rows), (f"{what}, each beside the one before", steps)):
        most = _DEVIATIONS * math.sqrt(len(sample)) / 2
        for bit in range(bits):
            ones = sum(row >> bit & 1 for row in sample)
            if abs(ones - len(sample) / 2) > most:
                received = f"bit {bit} is one in {ones} of {len(sample)}"
                bench.fail("fail_open", f"{told} are not drawn at random", received=received)
    rank = _rank(rows)
    if rank < min(len(rows), bits) - _SPARE:
        received = f"{rank} of {min(len(rows), bits)} independent"
        bench.fail("fail_open", f"{what} have fewer bits than they show", received=received)


def _rank(rows: Iterable[int]) -> int:
    """The rank of these bits over the field of two elements."""
    basis: dict[int, int] = {}
    for row in rows:
        left = row
        while left and (lead := left.bit_length()) in basis:
            left ^= basis[lead]
        if left:
            basis[left.bit_length()] = left
    return len(basis)


def _tell(bench: Bench, found: Sequence[Published]) -> None:
    """Fail with the first two that have something in common."""
    for number, each in enumerate(found):
        for other in found[: number + 1]:
            # Of one alone: whether a nonce stands in it twice, or its key is that of the vault.
            common = derive("hx.common", [each.data] if other is each else [other.data, each.data])
            if common:
                received = ", ".join(common)
                bench.fail("fail_open", f"{other.what} and {each.what} have something in common", received=received)
    bench.fail("fail_open", "objects have something in common")


def _all_types(bench: Bench, session: SuiteSession, store: str) -> Iterator[Published]:
    """Every type several times: of equal content where that makes another object, and by two processes."""
    world = ObjectBuilder(bench, session, "apart")
    window = {"start_ts": at(0), "end_ts": at(1)}
    for round_ in range(2):
        for node in ("a", "b"):
            label = f"{node} {round_}"
            batch = {"events": [world.event(node, "s1", 0, at(100))]}
            calls: dict[str, tuple[str, dict[str, Any]]] = {
                "segment": ("publish", {"segment_id": world.uuid(f"segment {label}"), "batch": batch}),
                "blob": ("publish_blob", {"bytes": base64url(label.encode())}),
                "long blob": ("publish_blob", {"bytes": base64url(Random(label).randbytes(_LONG))}),  # noqa: S311
                "tombstone": ("forget", {"tombstone_id": world.uuid(f"tombstone {label}"), **window}),
                "manifest": ("publish_manifest", {}),
            }
            for kind, (method, args) in calls.items():
                answer = session.call(method, {"node": node, **args}, round_)
                what = f"a {kind} of {node} in {store}"
                if (answer.outcome, answer.effect) != ("accepted", "new"):
                    bench.fail("over_refusal", f"{what} was not published", expected="new", received=answer.words)
                yield Published(what, kind.split()[-1], lying(bench, session, answer.value["key"], what))


def lying(bench: Bench, session: SuiteSession, key: str, what: str) -> str:
    """The bytes of an object. Of a long one the harness reads the digest alone, and the adapter gives the bytes."""
    found = session.file(key)
    if not found["exists"]:
        bench.fail("lost_durability", f"{what} does not lie at {key}")
    data: str | None = found["bytes"]
    if data is None:
        data = session.observe("get", {"key": key})["bytes"]
        if data is None or derive("hx.sha256", data) != found["sha256"]:
            bench.fail("wrong_reason", f"get of {what} gives other bytes than lie there")
    return data
