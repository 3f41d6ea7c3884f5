"""What suite tests do to objects in the store, and what must come of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import base64url, from_base64url
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.hx_sync.checks import compare, import_all, place, published
from holdfast.conformance.suites.hx_sync.fresh import drawn
from holdfast.conformance.suites.hx_sync.permutations import Made, ObjectBuilder, at, due
from holdfast.conformance.suites.session import SuiteSession
from holdfast.vectors.derive import derive
from holdfast.vectors.hx_sync.objects.format import parts_of

# How many bytes of text that does not repeat; two of these make a large object.
_LARGE = 150_000
# How often the harness checks for an object that is being written.
_LOOKS = 400
_YEAR = re.compile(r'("created_at"\s*:\s*")(\d{4})')


class Hostile:
    """A store with honest objects, of which one after the other is changed and restored."""

    def __init__(self, bench: Bench, session: SuiteSession, label: str, algorithm: str = "xchacha20-poly1305") -> None:
        self._bench, self._session = bench, session
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
        self._beside = world.segment("c", "beside", world.event("c", "s1", 0, at(0)))
        place(session, [self._beside])
        import_all(bench, session, "a")
        self._state = session.observe("state", {"node": "a"})
        self._tried = 0
        # Where the changed object lies.
        self._key: str | None = None

    def _published(self, world: ObjectBuilder) -> tuple[Made, Made]:
        """What the implementation sealed itself, taken out of its store, and the same with another time, of the kit's.

        Who binds too little to what he writes, and reads that too, shows it nowhere else.
        """
        made = world.segment("b", "own", world.event("b", "s2", 0, at(0)))
        published(self._bench, self._session, [made])
        found = self._session.file(made.key)["bytes"]
        parts = derive("hx.parts", found)
        if parts["error"] is not None:
            self._bench.fail("wrong_reason", f"what was published at {made.key} is no object: {parts['error']}")
        self._session.remove(made.key)
        # As long as the other, or the length in front of the header would be another as well.
        header = _YEAR.sub(lambda match: f"{match[1]}{int(match[2]) + 1}", parts["header_text"])
        later = {"type": "segment", "label": made.key, "header_text": header, "payload": made.args["batch"]}
        sealed = derive("hx.object", {**later, "algorithm": parts["algorithm"]})
        return replace(made, data=from_base64url(found)), replace(made, data=from_base64url(sealed))

    def refused(self, data: bytes, told: str, reasons: frozenset[str], target: Made | None = None) -> None:
        """These bytes at the key of an object are refused and reported for one of the reasons; nothing is applied."""
        target = target or self.small
        self._restore(target.key)
        self._session.place(target.key, data)
        self._key = target.key
        answer = self._session.call("import", {"node": "a"})
        self._tried += 1
        if answer.outcome != "accepted":
            self._bench.fail("over_refusal", f"the import beside an object {told} was refused: {answer.reason}")
        rejected = {row["key"]: row["reason"] for row in answer.value["rejected"]}
        if answer.effect != "prior" or answer.value["imported"]:
            self._bench.fail("fail_open", f"an object {told} was imported", expected="refused", received="imported")
        if rejected.keys() != {target.key}:
            self._bench.fail("fail_open", f"an object {told} was not reported", received=repr(answer.value)[:300])
        if rejected[target.key] not in reasons:
            expected = ", ".join(sorted(reasons))
            self._bench.report("wrong_reason", f"an object {told}", expected=expected, received=rejected[target.key])
        if self._tried % 16 == 0:
            self._untouched(told, target.key)

    def _restore(self, key: str | None) -> None:
        """Remove the changed object, unless another is about to take its place."""
        if self._key is not None and self._key != key:
            self._session.remove(self._key)

    def _untouched(self, told: str, key: str) -> None:
        found = self._session.observe("state", {"node": "a"})
        if found != self._state:
            self._bench.fail("state_leak", f"an object {told} was refused, and yet the state is another")
        counted = self._session.observe("status", {"node": "a"})["rejected"]
        if [row["key"] for row in counted] != [key]:
            self._bench.report(
                "wrong_reason", f"the status does not count an object {told}", received=repr(counted)[:300]
            )

    def conclude(self) -> None:
        """Nothing of what was refused was applied or remembered: the honest objects are imported, each as new."""
        if self._session.observe("state", {"node": "a"}) != self._state:
            self._bench.fail("state_leak", "objects were refused, and yet the state is another")
        # The changed one is written over.
        place(self._session, self._all)
        value = import_all(self._bench, self._session, "a")
        if value["imported"] != len(self._all) or value["rejected"]:
            received = repr(value)[:300]
            self._bench.fail(
                "lost_durability", "the honest objects were not all imported afterwards", received=received
            )
        compare(self._bench, self._session, ["a"], due([*self._all, self._beside]), "with the honest objects")


def flipped(data: bytes, number: int, bits: int) -> bytes:
    """The bytes with these bits of one of them changed."""
    return data[:number] + bytes([data[number] ^ bits]) + data[number + 1 :]


def one_is_new(bench: Bench, answers: Sequence[Answer], what: str) -> str:
    """The key that all writers of the same content received, of whom one was the first."""
    effects = sorted(str(answer.effect or answer.reason) for answer in answers)
    keys = {answer.value["key"] for answer in answers if answer.outcome == "accepted"}
    if effects != ["new", *["prior"] * (len(answers) - 1)]:
        verdict = "fail_open" if effects.count("new") > 1 else "over_refusal"
        bench.fail(
            verdict, f"{len(answers)} wrote {what}", expected="one new, the others prior", received=repr(effects)
        )
    if len(keys) != 1:
        bench.report("wrong_reason", f"writers of {what} were told different keys", received=repr(sorted(keys)))
    key: str = keys.pop()
    return key


def early_looks(bench: Bench, session: SuiteSession, key: str, method: str, args: dict[str, Any]) -> int:
    """How many inspections of a key found nothing while worker 0 wrote there; none may find, or import, part of it."""
    handle = session.start(method, args)
    seen: list[dict[str, Any]] = []
    while len(seen) < _LOOKS and not (seen and seen[-1]["exists"]):
        seen.append(session.file(key))
    imported = session.call("import", {"node": "b"}, 1)
    seen.append(session.file(key))
    answer = session.finish(handle)
    whole = session.file(key)
    if answer.outcome != "accepted" or not whole["exists"]:
        bench.fail("over_refusal", f"{method} wrote no object: {answer.reason}")
    parts = {(look["size"], look["sha256"]) for look in seen if look["exists"]}
    if parts - {(whole["size"], whole["sha256"])}:
        bench.fail("lost_durability", "part of an object was seen at its key", received=repr(sorted(parts))[:300])
    if imported.outcome != "accepted" or imported.value["rejected"] or imported.value["foreign"]:
        bench.fail("wrong_reason", "an import met part of an object", received=repr(imported.value)[:300])
    return sum(not look["exists"] for look in seen)


def open_placed(bench: Bench, session: SuiteSession, key: str) -> dict[str, Any]:
    """What the object at a key says, read past the adapter and opened by the kit itself."""
    found = session.file(key)
    if found["bytes"] is None:
        bench.fail("lost_durability", f"no object of at most 64 KiB lies at {key}", received=repr(found)[:300])
    opened: dict[str, Any] = derive("hx.opened", {"object": found["bytes"]})
    if opened["error"] is not None:
        bench.fail("wrong_reason", f"the object at {key} does not open: {opened['error']}")
    return opened


def fresh(bench: Bench, session: SuiteSession, algorithm: str, count: int) -> None:
    """Of `count` objects of equal payload no two have a key, a nonce or a ciphertext in common."""
    world = ObjectBuilder(bench, session, "fresh")
    batch = {"events": [world.event("a", "s1", 0, at(0))]}
    seen: dict[str, set[bytes]] = {name: set() for name in ("wrapped key", "ciphertext", "object key", "nonce")}
    nonces: list[tuple[bytes, bytes]] = []
    keys: list[bytes] = []
    for number in range(count):
        if number == count // 2:
            session.restart(1)
        args = {"node": "a", "segment_id": world.uuid(str(number)), "batch": batch}
        answer = session.call("publish", args, number % 2)
        if answer.outcome != "accepted":
            bench.fail("over_refusal", f"publish was refused: {answer.reason}")
        opened = open_placed(bench, session, answer.value["key"])
        if opened["header"]["crypto"] != {"alg": algorithm}:
            bench.report(
                "wrong_reason", "another algorithm", expected=algorithm, received=repr(opened["header"]["crypto"])
            )
        parts = parts_of(from_base64url(session.file(answer.value["key"])["bytes"]))
        nonces.append((parts.wrap_nonce, parts.nonce))
        own = bytes.fromhex(opened["object_key"])
        keys.append(own)
        for name, value in (("wrapped key", parts.wrapped_key), ("ciphertext", parts.ciphertext), ("object key", own)):
            if value in seen[name]:
                bench.fail("fail_open", f"two of {number + 1} objects have one {name}", received=base64url(value)[:64])
            seen[name].add(value)
        for value in nonces[-1]:
            if value in seen["nonce"]:
                bench.fail("fail_open", f"in {number + 1} objects a nonce stands twice", received=value.hex())
            seen["nonce"].add(value)
    drawn(bench, [pair[0] for pair in nonces], "nonces of wraps")
    drawn(bench, [pair[1] for pair in nonces], "nonces of payloads")
    drawn(bench, keys, "keys of objects")
