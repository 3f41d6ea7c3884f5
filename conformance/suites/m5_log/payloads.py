"""m5-log: what is signed and deterministic CBOR, and nearly an operation; encodings and signatures at their edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.suites.m5_log.generate import ISSUER, Made, state_of
from holdfast.conformance.suites.m5_log.log import must_be_done, must_be_refused, must_have_rows, put
from holdfast.vectors.derive import derive
from holdfast.vectors.m5_log.committed import encodings
from holdfast.vectors.m5_log.curve import NAMES, SOUND
from holdfast.vectors.m5_log.encoding import binary

# Levels of an operation above the value of its payload: the body and the payload.
_ABOVE = 2
_LONGEST, _LEAST, _MOST = 255, -(2**31), 2**31 - 1


def _bytes(size: int) -> dict[str, str]:
    return {"cbor": binary(bytes(size)).hex()}


# What stands where a text, an amount, a hash or bytes have to, and what may stand there at its bounds.
_TEXTS = ("", "x" * (_LONGEST + 1), 7, True, None, ["x"], {"x": 1}, _bytes(4))
_FITTING_TEXTS = ("x", "x" * _LONGEST, "é" * _LONGEST)
_AMOUNTS = (_LEAST - 1, _MOST + 1, 2**63, "1", True, None, [1], _bytes(1))
_FITTING_AMOUNTS = (_LEAST, -1, 0, _MOST)
_TEXT_OF_A_HASH = ({"cbor": "7840" + b"0".hex() * 64}, {"cbor": "7820" + b"0".hex() * 32})
_HASHES = (_bytes(31), _bytes(33), _bytes(0), *_TEXT_OF_A_HASH, None)
_BINARIES = ({"cbor": "6178"}, 7, None, [_bytes(4)])
_VALUES: tuple[Any, ...] = (None, 0, -(2**63), 2**63, "", [], {}, [{"x": [None]}], _bytes(0))
_WRONG: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "set": {"key": _TEXTS, "tag": _TEXTS, "value": ()},
    "add": {"key": _TEXTS, "tag": _TEXTS, "amount": _AMOUNTS},
    "grant": {"subject": _HASHES, "role": _TEXTS, "tag": _TEXTS, "credential": _HASHES},
    "revoke": {"subject": _HASHES, "role": _TEXTS, "tag": _TEXTS},
    "credential": {"credential": _BINARIES},
}
_FITTING: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "set": {"key": _FITTING_TEXTS, "tag": _FITTING_TEXTS, "value": _VALUES},
    "add": {"key": _FITTING_TEXTS, "tag": _FITTING_TEXTS, "amount": _FITTING_AMOUNTS},
    "revoke": {"role": _FITTING_TEXTS, "tag": _FITTING_TEXTS},
}
# Members of the body that are nearly right, and what else than OP_MALFORMED may be said of them.
_BODIES: Mapping[str, tuple[tuple[Any, ...], str]] = {
    "author": ((*_HASHES, 7), "SIGNATURE_INVALID"),
    "format": (("ecac:v10", "ecac:v", "ECAC:v1", "ecac:v1 ", "", 1, None), "SCHEMA_UNSUPPORTED"),
    "hlc": ((_bytes(11), _bytes(13), _bytes(8), 0, "0" * 12, None), ""),
    "kind": (("sets", "Set", "set ", "se", "", 7, None, ["set"]), ""),
    "parents": ((None, {}, "", 0, [_bytes(31)], [_bytes(33)], ["0" * 64], [None], [[]]), ""),
    "payload": ((None, [], "", 7, _bytes(1)), ""),
}


def _right(kind: str) -> dict[str, Any]:
    """A payload of this kind with each of its members."""
    usual: dict[str, Any] = {"subject": "bob", "role": "editor", "tag": "t", "key": "k", "value": 1, "amount": 1}
    held = "00" * 32 if kind == "grant" else derive("m5.credential", {"issuer": ISSUER, "subject": "bob", **_CLAIMS})
    return {name: held if name == "credential" else usual[name] for name in _WRONG[kind]}


_CLAIMS = {"role": "editor", "scope": ["t"], "nbf": 0, "exp": 9}


def _wrong() -> Iterator[tuple[str, dict[str, Any], str]]:
    """What is wrong, a draft, and another reason that may be told."""
    for kind, members in _WRONG.items():
        right = _right(kind)
        optional = {"tag"} if kind in ("set", "add") else set()
        for name, values in members.items():
            other = "CREDENTIAL_MALFORMED" if kind == "credential" else ""
            for value in values:
                yield f"{name} of {kind} is {value!r:.40}", {"kind": kind, "payload": {**right, name: value}}, other
            for near in (name.upper(), f"{name} ", f"{name}s"):
                renamed = {near if key == name else key: value for key, value in right.items()}
                yield f"{kind} with {near!r} for {name}", {"kind": kind, "payload": renamed}, ""
            if name not in optional:
                left = {key: value for key, value in right.items() if key != name}
                yield f"{kind} without {name}", {"kind": kind, "payload": left}, ""
        yield f"{kind} with an unknown member", {"kind": kind, "payload": {**right, "more": 1}}, ""
    right = _right("set")
    for name, (values, other) in _BODIES.items():
        for value in values:
            yield f"{name} is {value!r:.40}", {"payload": right, "members": {name: value}}, other
        yield f"no {name}", {"payload": right, "drop": [name]}, ""
        yield f"{name} under another name", {"payload": right, "drop": [name], "members": {name.upper(): 1}}, ""
    yield "an unknown member", {"payload": right, "members": {"more": None}}, ""


def _fitting() -> Iterator[tuple[str, dict[str, Any]]]:
    for kind, members in _FITTING.items():
        right = _right(kind)
        for name, values in members.items():
            for value in values:
                yield f"{name} of {kind} is {value!r:.40}", {"kind": kind, "payload": {**right, name: value}}


def _nested(depth: int, shape: str) -> Any:
    """A value of this many levels, of arrays (a) and maps (m), the outermost first; the innermost one is empty."""
    levels = [shape[at % len(shape)] for at in range(depth)]
    inner = {"a": "80", "m": "a0"}[levels.pop()]
    return {"cbor": "".join({"a": "81", "m": "a16178"}[each] for each in levels) + inner}


@clause("M5-PUT-6", written=True)
def test_a_value_is_as_deep_as_it_may_be_and_no_deeper_whatever_it_consists_of(bench: Bench) -> None:
    """Arrays, maps, and both in turns, with an empty one innermost; one level more, and a thousand more."""
    deepest = int(str(bench.contract.parameters["max_depth"].value)) - _ABOVE
    with bench.session() as session:
        draft = {"key": f"alice {session.rand('depth')}", "ms": 1}
        for shape in ("a", "m", "am", "ma", "aam", "mma"):
            for depth in (deepest, deepest + 1, deepest + 1000):
                payload = {"key": shape, "value": _nested(depth, shape)}
                answer = session.call("put_op", {"op": derive("m5.op", {**draft, "payload": payload})})
                what = f"a value of {depth} levels ({shape})"
                if depth == deepest:
                    must_be_done(bench, answer, what)
                else:
                    must_be_refused(bench, answer, "NON_CANONICAL", what)
        for above in range(deepest):
            payload = {"key": "k", "value": {"cbor": "81" * above + "a1" + "81" * 1000 + "8001"}}
            answer = session.call("put_op", {"op": derive("m5.op", {**draft, "payload": payload})})
            must_be_refused(bench, answer, "NON_CANONICAL", f"a key of a thousand levels, {above + 1} levels deep")


@clause("M5-PUT-8", written=True)
def test_what_is_nearly_an_operation_is_refused_and_what_is_at_its_bounds_is_not(bench: Bench) -> None:
    """Each member of each kind and of the body is missing, has another name, type or length, or is out of its range."""
    with bench.session() as session:
        author = f"alice {session.rand('contents')}"
        stored = []
        for ms, (what, draft) in enumerate(_fitting()):
            made = Made.of({"key": author, "ms": ms, "parents": [], **draft})
            put(bench, session, made, what=what)
            stored.append(made)
        must_have_rows(bench, session, stored)
        for what, draft, other in _wrong():
            answer = session.call("put_op", {"op": derive("m5.op", {"key": author, "ms": 0, **draft})})
            if answer.outcome != "refused" or answer.reason not in ("OP_MALFORMED", other):
                verdict = "wrong_reason" if answer.outcome == "refused" else "fail_open"
                told = f"{answer.outcome} {answer.reason or ''}"
                bench.weigh(verdict, f"{what}: it is no operation", expected="refused OP_MALFORMED", received=told)
        if (found := session.observe("iter_ops")["op_ids"]) != sorted(each.op_id for each in stored):
            bench.fail("state_leak", "what is stored", expected=f"{len(stored)} operations", received=f"{len(found)}")


# Encodings of RFC 8949, signatures at the edges of RFC 8032, each in an operation that is sound otherwise


def _draft(session: SuiteSession, number: int, value: Any) -> Mapping[str, Any]:
    payload = {"key": f"k {number}", "value": value}
    return {
        "key": f"alice {session.rand('alice')}",
        "ms": 1000 + number,
        "kind": "set",
        "parents": [],
        "payload": payload,
    }


def _accepted(bench: Bench, session: SuiteSession, op: str, what: str) -> None:
    answer = session.call("put_op", {"op": op})
    received = f"{answer.outcome} {answer.reason or answer.effect}"
    if answer.outcome != "accepted":
        bench.fail(
            answer.judged("over_refusal"), f"{what} is to be accepted", expected="accepted new", received=received
        )
    if answer.effect != "new":
        bench.fail("lost_durability", f"{what} is new", expected="accepted new", received=received)


@clause("M5-PUT-6", "M5-PUT-7")
def test_encodings_of_the_rfc_are_read_or_refused_as_the_contract_says(bench: Bench) -> None:
    """Appendix A with what an operation may hold and what not, Appendix F, and other spellings of what it may hold."""
    with bench.session(hurried=False) as session:
        stored = []
        for number, record in enumerate(encodings()):
            draft = _draft(session, number, {"cbor": record["cbor"]})
            op = derive("m5.op", draft)
            if "value" in record:
                _accepted(bench, session, op, f"a value with the encoding {record['cbor']}")
                stored.append(Made(draft, op, derive("m5.op_id", op)))
            else:
                answer = session.call("put_op", {"op": op})
                must_be_refused(bench, answer, "NON_CANONICAL", f"{record['cbor']} ({record['why']})")
        due, dumped = state_of(stored, []), session.observe("dump", {"from": "genesis"})["state"]
        if dumped != due:
            verdict = bench.verdict_on("dump", {"state": due}, {"state": dumped})
            bench.fail(verdict, "the state is not that of what was accepted", expected=due, received=dumped)


@clause("M5-PUT-1")
def test_signatures_at_the_edges_of_the_curve_are_none(bench: Bench) -> None:
    """Keys, R and S that satisfy the equation, or do with a cofactor; and one of mixed order, which is a signature."""
    with bench.session(hurried=False) as session:
        for number, name in enumerate(NAMES):
            draft = _draft(session, number, number)
            if name != SOUND:
                # Its twin: the same operation with a signature of its author, who is another one then.
                _accepted(bench, session, derive("m5.op", draft), f"the operation {number} with an ordinary signature")
                answer = session.call("put_op", {"op": derive("m5.edge", {"op": draft, "name": name})})
                must_be_refused(bench, answer, "SIGNATURE_INVALID", f"a signature at an edge ({name})")
            else:
                _accepted(bench, session, derive("m5.edge", {"op": draft, "name": name}), f"a signature ({name})")
        found = session.observe("topo_iter")["op_ids"]
        if len(found) != len(NAMES):
            bench.fail("fail_open", "other operations are stored than were accepted", received=", ".join(found))
