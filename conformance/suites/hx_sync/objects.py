"""hx-sync: every byte of an object, and more objects than fit a page."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from hashlib import sha256
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import from_base64url
from holdfast.conformance.suites.hx_sync.builders import Devices, bent
from holdfast.conformance.suites.hx_sync.model import Bad, Lies, called
from holdfast.conformance.suites.hx_sync.permutations import NODES, Made, ObjectBuilder, at
from holdfast.vectors.derive import derive
from holdfast.vectors.hx_sync.objects import altering
from holdfast.vectors.hx_sync.objects.format import ALGORITHMS, BYTE, PRELUDE

# How many bytes of text that does not repeat; two of these make a large object.
_LARGE = 150_000
_YEAR = re.compile(r'("created_at"\s*:\s*")(\d{4})')


class Hostile:
    """A store with honest objects, of which one after the other is changed and restored."""

    def __init__(self, bench: Bench, session: SuiteSession, label: str, algorithm: str = "xchacha20-poly1305") -> None:
        self._devices = Devices(bench, session)
        world = ObjectBuilder(bench, session, label, algorithm=algorithm)
        filling = "".join(derive("hx.uuid", f"{label} {number}") for number in range(_LARGE // 36))
        self.small = world.segment("a", "small", world.event("a", "s1", 0, at(0)))
        self.twin = world.segment("a", "twin", world.event("a", "s1", 0, at(0)))
        self.large = world.segment("b", "large", world.event("b", "s1", 0, at(0), filling))
        self.tombstone = world.tombstone("window", at(50), at(60))
        self.blob = world.blob(filling)
        self.own, self.own_later = self._published(world)
        self._all = [self.small, self.twin, self.large, self.tombstone, self.blob, self.own]
        # What stands beside the one that was changed, and is imported at the first occasion.
        self._devices.lay(world.segment("c", "beside", world.event("c", "s1", 0, at(0))))
        self._devices.do("import", node="a")
        self._tried = 0
        # Where the changed object lies.
        self._key: str | None = None

    def _published(self, world: ObjectBuilder) -> tuple[Made, Made]:
        """What the implementation sealed itself, taken out of its store, and the same with another time, of the kit's.

        Who binds too little to what he writes, and reads that too, shows it nowhere else.
        """
        devices, made = self._devices, world.segment("b", "own", world.event("b", "s2", 0, at(0)))
        devices.publish(made)
        found = devices.session.file(made.key)["bytes"]
        parts = derive("hx.parts", found)
        if parts["error"] is not None:
            devices.bench.fail("wrong_reason", f"what was published at {made.key} is no object: {parts['error']}")
        devices.remove(made.key)
        # As long as the other, or the length in front of the header would be another as well.
        header = _YEAR.sub(lambda match: f"{match[1]}{int(match[2]) + 1}", parts["header_text"])
        later = {"type": "segment", "label": made.key, "header_text": header, "payload": made.args["batch"]}
        sealed = derive("hx.object", {**later, "algorithm": parts["algorithm"]})
        return replace(made, data=from_base64url(found)), replace(made, data=from_base64url(sealed))

    def refused(self, data: bytes, told: str, reasons: frozenset[str], target: Made | None = None) -> None:
        """These bytes at the key of an object are refused and reported for one of the reasons; nothing is applied."""
        devices, target = self._devices, target or self.small
        # The changed object is removed, unless another is about to take its place.
        if self._key not in (None, target.key):
            devices.remove(str(self._key))
        devices.put(target.key, data, Lies(Bad(reasons), sha256(data).hexdigest()))
        self._key = target.key
        devices.ask(replace(called("import", node="a"), named=f"the import beside an object {told}"))
        self._tried += 1
        if self._tried % 16 == 0:
            for each in devices.model.of_device(devices.state, "a"):
                devices.must_show(each, f"an object {told} was refused")

    def conclude(self) -> None:
        """Nothing of what was refused was applied or remembered: the honest objects are imported, each as new."""
        # The changed one is written over.
        self._devices.lay(*self._all)
        self._devices.do("import", node="a")
        self._devices.compare()


def flipped(data: bytes, number: int, bits: int) -> bytes:
    """The bytes with these bits of one of them changed."""
    return data[:number] + bytes([data[number] ^ bits]) + data[number + 1 :]


# Every byte of an object

_UNCHANGED = frozenset({"OBJECT_MALFORMED", "FOREIGN_VAULT", "OBJECT_MISPLACED", "OBJECT_UNAUTHENTIC"})


@clause("HX-CRY-6", "HX-T5", "HX-CRY-4")
def test_with_any_byte_changed_an_object_is_refused_and_counted(bench: Bench) -> None:
    """Every byte of a small one, in turn; with the other algorithm those outside of the header, which is the same."""
    for algorithm in BYTE:
        with bench.session() as session:
            hostile = Hostile(bench, session, "bytes", algorithm)
            header = range(PRELUDE, altering.regions(hostile.small.data)["wrap-nonce"])
            for number in range(len(hostile.small.data)):
                if algorithm != ALGORITHMS[1] and number in header:
                    continue
                told = f"with a bit changed at byte {number}, {algorithm}"
                hostile.refused(flipped(hostile.small.data, number, 1 << number % 8), told, _UNCHANGED)
            for number in range(0, len(hostile.own.data), 7):
                told = f"of its own with a bit changed at byte {number}"
                hostile.refused(flipped(hostile.own.data, number, 1 << number % 8), told, _UNCHANGED, hostile.own)
            hostile.conclude()


@clause("HX-CRY-6", "HX-T5", "HX-T3")
def test_a_large_object_is_refused_wherever_a_byte_of_it_is_another(bench: Bench) -> None:
    """A segment and a blob of some hundred kilobytes: the edges of every part, and places in between."""
    with bench.session() as session:
        hostile = Hostile(bench, session, "large")
        dice = random.Random(11)  # noqa: S311 - nothing is kept secret with it
        for target in (hostile.large, hostile.blob):
            starts = altering.regions(target.data).values()
            edges = {edge + beside for edge in (*starts, len(target.data)) for beside in (-1, 0)}
            places = {*edges, *dice.sample(range(len(target.data)), 16)} & set(range(len(target.data)))
            for number in sorted(places):
                told = f"with a bit changed at byte {number}"
                hostile.refused(flipped(target.data, number, 0x80), told, _UNCHANGED, target)
        hostile.conclude()


@clause("HX-T3", "HX-CRY-6", "HX-IMP-5")
def test_an_object_that_was_cut_anywhere_is_refused_until_the_whole_one_comes(bench: Bench) -> None:
    """At every sixteenth, at the edges of every part, with nothing left, and with something behind."""
    with bench.session() as session:
        hostile = Hostile(bench, session, "cut")
        for target in (hostile.small, hostile.large, hostile.blob):
            size = len(target.data)
            starts = altering.regions(target.data).values()
            lengths = sorted({size * part // 16 for part in range(16)} | set(starts) | {1, size - 1})
            for length in lengths:
                hostile.refused(target.data[:length], f"cut to {length} of {size} bytes", _UNCHANGED, target)
            for tail in (b"\x00", b"\n", target.data):
                hostile.refused(target.data + tail, f"with {len(tail)} bytes behind it", _UNCHANGED, target)
        hostile.conclude()


@clause("HX-T5", "HX-CRY-3", "HX-CRY-4", "HX-SEG-3", "HX-SEG-5", "HX-SEG-6")
def test_no_part_and_no_place_of_an_object_can_be_exchanged(bench: Bench) -> None:
    """Header, wrapped key, nonces and payload of another object, and each object at the other's key."""
    with bench.session() as session:
        hostile = Hostile(bench, session, "swaps")
        others = {"large": hostile.large, "blob": hostile.blob, "tombstone": hostile.tombstone, "twin": hostile.twin}
        for name, other in others.items():
            for how in ("swap-header", "swap-wrap", "swap-wrap-nonce", "swap-nonce", "swap-payload"):
                mixed = altering.altered(hostile.small.data, how, other=other.data)
                hostile.refused(mixed, f"with {how} of the {name}", _UNCHANGED)
            for target in (hostile.small, hostile.tombstone):
                if other is not target:
                    hostile.refused(other.data, f"the {name} at its place", frozenset({"OBJECT_MISPLACED"}), target)
            hostile.refused(hostile.small.data, f"at the place of the {name}", frozenset({"OBJECT_MISPLACED"}), other)
        for how in ("swap-header", "swap-wrap", "swap-payload"):
            mixed = altering.altered(hostile.own.data, how, other=hostile.own_later.data)
            hostile.refused(mixed, f"of its own with {how} of one of another time", _UNCHANGED, hostile.own)
        hostile.conclude()


@clause("HX-BLB-6")
def test_a_blob_that_grows_beyond_all_measure_is_refused_at_once(bench: Bench) -> None:
    """Frames of a few kilobytes that hold a gibibyte, state more or less than they hold, or do not say."""
    gibibyte = 1 << 30
    bombs: dict[str, dict[str, Any]] = {
        "a gibibyte, as it says": {"length": gibibyte, "frame": {"zeros": gibibyte}},
        "a gibibyte that says 1000": {"length": 1000, "frame": {"zeros": gibibyte, "stated_size": 1000}},
        "a gibibyte that does not say": {"length": 1000, "frame": {"zeros": gibibyte, "without_size": True}},
        "a gibibyte in a header of 1000": {"length": 1000, "frame": {"zeros": gibibyte}},
        "1000 that say a tebibyte": {"length": 1000, "frame": {"zeros": 1000, "stated_size": 1 << 40}},
        "1000 in a header of a tebibyte": {"length": 1 << 40, "frame": {"zeros": 1000}},
        "1000, and as many behind": {"length": 1000, "frame": {"zeros": 1000, "frames": 2}},
        "1000, and garbage behind": {"length": 1000, "frame": {"zeros": 1000, "trailing": "AAAA"}},
        "1000 in a thousand frames": {"length": 1000, "frame": {"zeros": 1, "frames": 1000}},
    }
    with bench.session() as session:
        world, devices = ObjectBuilder(bench, session, "bombs"), Devices(bench, session)
        for name, bomb in bombs.items():
            frame = derive("hx.zstd", bomb["frame"])
            made = derive("hx.blob", {"zeros": 1000, "frame": frame, "byte_len_plain": bomb["length"], "label": name})
            key, data = derive("hx.key", {"object": made}), from_base64url(made)
            devices.put(key, data, Lies(Bad(frozenset({"BLOB_MISMATCH"})), sha256(data).hexdigest()))
            devices.ask(replace(called("import_object", node="a", key=key), named=f"a blob: {name}"))
        devices.compare()
        devices.remove(key)
        devices.lay(world.blob("honest"))
        devices.do("import", node="a")
        devices.compare()


# More than fits a page


@clause("HX-STO-1", "HX-P5")
def test_a_store_of_more_than_a_thousand_objects_is_listed_and_imported_whole(bench: Bench) -> None:
    """What comes last in any order is among empty objects: a page that is taken for the whole loses it."""
    with bench.session() as session:
        world, devices = ObjectBuilder(bench, session, "many"), Devices(bench, session)
        ends = [world.segment(node, f"{node} has one", world.event(node, "s1", 0, at(0))) for node in NODES]
        folder = ends[1].key.rpartition("/")[0]
        for number in range(1100):
            devices.put(f"{folder}/{world.uuid(f'empty {number}')}.hxseg", *bent("empty", b"0"))
        devices.lay(*ends)
        devices.must_show(devices.model.listed(devices.state, "HXSync"), "among more than a thousand objects")
        devices.do("import", node="a")
        devices.compare()
