"""The sweep of near misses: one leaf of an operation's arguments is varied at a time, and everything else stays good.

`neighbours.yaml` of a contract says which leaf, in which situation, and what is due (docs/neighbours.md);
`vectors/neighbours` has the near misses. This module decides what a near miss is to the good value, asks, and judges:

    malformed   it breaks the schema of its leaf, or has no normal form: refused, and inert
    same        its normal form is that of the good value
    other       its normal form is another
    open        the contract does not say: every answer is right

All near misses that are malformed are sent in a row beside one good value, which must be accepted at the end. Each of
the others has values of its own, so that no near miss meets another one.

A near miss that is accepted as new is read back: where the state that the contract lets observe shows a good value once
it is accepted, it has to show the near miss as well, in a spelling of the same normal form.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from holdfast.conformance.attacks import tabled
from holdfast.conformance.attacks.bench import Bench, listed
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.inertness import judge_inert
from holdfast.conformance.cases.match import same
from holdfast.conformance.cases.record import Judgement, NonConformance
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import CaseError, Scope, at_path, from_base64url, is_missing, names_in, put_path
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Contract
from holdfast.specs.consistency import leaves_of
from holdfast.specs.leaves import ROOT, Leaf, SchemaLeaf
from holdfast.specs.model import CaseKind, Method
from holdfast.specs.neighbours import Sessions, Sweep
from holdfast.vectors.derive import derive
from holdfast.vectors.neighbours import Neighbour, neighbour, neighbours

_SAME, _OTHER, _MALFORMED, _OPEN = "same", "other", "malformed", "open"
# A longer value is cut to this number of characters in a message; its exchange holds all of them.
_SHOWN = 60
# This number of near misses shares a session, which has a deadline.
_IN_A_SESSION = 25


def swept(module: str, **clauses: str) -> Mapping[str, Callable[[Bench], None]]:
    """The suite tests of a module, by their names: each runs the sweeps that prove one clause."""
    return tabled(module, sweep, **{name: ((clause,), (clause,)) for name, clause in clauses.items()})


def sweep(bench: Bench, clause: str) -> None:
    """Run every sweep that proves this clause, then report the worst of what they found, and what else there is."""
    declared = bench.contract.neighbours
    proving = () if declared is None else declared.proving(clause)
    methods = bench.contract.methods
    # A role that is not claimed is not asked, though its clause binds others as well.
    sweeps = [each for each in proving if methods[each.probe["call"]].role not in bench.not_claimed]
    if not sweeps:
        bench.fail(Verdict.NOT_REACHED.value, f"{clause}: neighbours.yaml declares no sweep of this clause")
    found = [
        each for one in sweeps for varied in varied_of(bench.contract, one) for each in Swept(bench, one, varied).run()
    ]
    if not found:
        return
    worst = min(found, key=lambda each: each.verdict.rank)
    others = [each.text for each in found if each is not worst]
    text = f"{clause}: {worst.text}{'; also ' + listed(others) if others else ''}"
    bench.fail(worst.verdict.value, text, expected=worst.expected, received=worst.received, at=worst.n)


@dataclass(frozen=True, slots=True)
class Varied:
    """What is varied together: the leaf, and where its value is put, or None where `$y` stands in the probe."""

    name: str
    place: SchemaLeaf
    leaf: Leaf
    path: str | None


def varied_of(contract: Contract, one: Sweep) -> Iterator[Varied]:
    if one.value is not None:
        yield Varied(one.name, SchemaLeaf(one.name, one.value, {}), one.value, None)
        return
    known = leaves_of(contract)
    for name in one.leaves if one.original is None else one.leaves[:1]:
        path, place = name.partition(":")[2], known[name]
        assert place.leaf is not None, "check_consistent has seen to it"
        yield Varied(name, place, place.leaf, path.replace("*", "0") if one.original is None else None)


@dataclass(frozen=True, slots=True)
class _Form:
    """The normal form of a value, the class that it has of itself, and whether it may be malformed as well."""

    text: Any
    named: str | None = None
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    """A finding."""

    verdict: Verdict
    text: str
    expected: str
    received: str
    n: int | None


class Swept:
    """One sweep of one leaf."""

    def __init__(self, bench: Bench, one: Sweep, varied: Varied) -> None:
        self._bench, self._contract, self._sweep, self._varied = bench, bench.contract, one, varied
        self._method = bench.contract.methods[one.probe["call"]]
        self._alone = varied.place.validator()
        self._found: list[_Found] = []
        self._sources: Mapping[str, str] = {}
        bound = {name for step in one.given for name in step.get("bind", {})}
        # The good value may come from an answer of `given`; then the caller cannot choose it.
        self._chosen = bool(names_in(one.original) & bound)
        self._storable = one.stored and "x" in names_in(list(one.given))
        self._late = self._chosen or varied.path is not None
        self._sent = 0
        # The normal forms of texts. Each is held against all that a state shows.
        self._forms: dict[str, _Form | ValueError | None] = {}
        # What was accepted as new in this session.
        self._accepted: list[tuple[str, Neighbour]] = []

    def run(self) -> list[_Found]:
        """Send all near misses; what was found. A sweep that could send none has proven nothing."""
        with self._bench.session() as session:
            names = self._in_a_row(session)
        shown = self._shows() if names and not self._found else False
        lost: list[str] = []
        accepted = 0
        size = 1 if self._sweep.sessions is Sessions.EACH else _IN_A_SESSION
        for first in range(0, len(names), size):
            with self._bench.session() as session:
                for name in names[first : first + size]:
                    self._alone_in(session, name)
                accepted += len(self._accepted)
                lost += [name for name, _ in self._unread(session)]
        # Where no good value says what is shown, most of the near misses do.
        is_shown = shown or (shown is None and 2 * len(lost) <= accepted)
        # Another near miss may have come in its place: once more, in a session of its own.
        for name in dict.fromkeys(lost if is_shown else ()):
            with self._bench.session() as session:
                self._alone_in(session, name)
                for _, near in self._unread(session):
                    self._not_there(near)
        if not self._found and not self._sent:
            detail = f"{self._varied.name}: no near miss could be sent"
            self._found.append(_Found(Verdict.NOT_REACHED, detail, "at least one near miss", "none", None))
        return self._found

    # Reading back

    def _shows(self) -> bool | None:
        """Whether the observed state shows a good value that the probe presents and that is accepted as new.

        None where that cannot be tried: an answer chooses good values, or they are always the same, so that what is
        shown may be another one.
        """
        if self._contract.inertness_of(self._method) is None:
            return False
        if self._late:
            return None
        with self._bench.session() as session:
            scope = self._scope(session, "read back")
            good, stored = self._original(self._scope(session, "read back beside")), self._original(scope)
            if good == stored:
                return None
            given = self._given(session, _valued(scope, stored, good), "a good value")
            if given is None:
                return False
            before = self._like(good, self._observed(session))
            is_new = session.call(self._sweep.probe["call"], self._args(given)).effect == "new"
            return is_new and len(self._like(good, self._observed(session))) > len(before)

    def _unread(self, session: SuiteSession) -> list[tuple[str, Neighbour]]:
        """The near misses that were accepted as new in this session and that the observed state does not show."""
        accepted, self._accepted = self._accepted, []
        if self._found:
            return []
        nodes = self._observed(session) if accepted else []
        return [(name, near) for name, near in accepted if not self._like(near.value, nodes)]

    def _observed(self, session: SuiteSession) -> list[Any]:
        return list(_nodes(session.around(self._method)))

    def _like(self, value: Any, nodes: Iterable[Any]) -> list[Any]:
        """The observed values that are this one, in any spelling of its normal form."""
        spelt = [value]
        if isinstance(value, str):
            digest = {"text_sha256": sha256(value.encode("utf-8", "surrogatepass")).hexdigest()}
            spelt += [{**digest, "bytes": len(value.encode("utf-8", "surrogatepass"))}]
            with contextlib.suppress(ValueError):
                spelt += [from_base64url(value).hex()]
        # A normal form is of values of one type.
        return [
            node
            for node in nodes
            if (node in spelt if isinstance(node, str) else any(same(node, each) for each in spelt))
            or (type(node) is type(value) and self._class(value, node)[0] == _SAME)
        ]

    def _not_there(self, near: Neighbour) -> None:
        due = f"{_shown(near.value)} in the observed state"
        detail = "accepted as new, and the observed state does not show it"
        self._note(near, Judgement(Verdict.LOST_DURABILITY, detail=detail, expected=due, received="no such value"))

    # Values

    def _scope(self, session: SuiteSession, label: str) -> Scope:
        side = f"{self._sweep.name}/{self._varied.name}/{label}"
        return replace(self._bench.scope, side=side, defined=self._sweep.values, now=session.now, opened=session.now)

    def _original(self, scope: Scope) -> Any:
        if self._varied.path is None:
            return scope.resolve(self._sweep.original)
        found = at_path(self._args(scope), "" if self._varied.path == ROOT else self._varied.path)
        return None if is_missing(found) else found

    def _args(self, scope: Scope) -> dict[str, Any]:
        if self._varied.path == ROOT and "y" in scope.bound:
            return dict(copy.deepcopy(scope.bound["y"]))
        args: dict[str, Any] = scope.resolve(self._sweep.probe.get("args", {}))
        if self._varied.path is not None and "y" in scope.bound:
            put_path(args, self._varied.path, copy.deepcopy(scope.bound["y"]))
        return args

    def _all(self, original: Any) -> dict[str, Neighbour]:
        """The near misses of this value that can be used here."""
        return {name: near for name, near in neighbours(self._varied.leaf.kind, original).items() if self._usable(near)}

    def _near(self, original: Any, name: str) -> Neighbour | None:
        near = neighbour(self._varied.leaf.kind, original, name)
        return near if near is not None and self._usable(near) else None

    def _usable(self, near: Neighbour) -> bool:
        """Whether the good value that stands beside the near miss can be had, and whether a call can carry it."""
        if self._varied.path == ROOT and not isinstance(near.value, Mapping):
            return False
        return not (near.moved and (self._chosen or self._uncertain(near.base)))

    def _form(self, value: Any) -> _Form | ValueError | None:
        """The normal form of a value; None where the contract leaves it open; an error for what has none."""
        if isinstance(value, str) and value in self._forms:
            return self._forms[value]
        try:
            form = self._made_form(value)
        except ValueError as error:
            form = error
        if isinstance(value, str):
            self._forms[value] = form
        return form

    def _made_form(self, value: Any) -> _Form | ValueError | None:
        if not self._alone.is_valid(value):
            return ValueError("it does not fit the schema of its leaf")
        if self._varied.leaf.normal is None:
            return _Form(value)
        normal = derive(self._varied.leaf.normal, value)
        if isinstance(normal, Mapping):
            return _Form(normal["form"], normal.get("class"), bool(normal.get("doubtful")))
        return None if normal is None else _Form(normal)

    def _class(self, stored: Any, presented: Any) -> tuple[str, bool]:
        """What `presented` is to `stored`, and whether it may be malformed as well."""
        mine, its = self._form(presented), self._form(stored)
        if isinstance(mine, ValueError):
            return _MALFORMED, False
        if mine is None or its is None or isinstance(its, ValueError):
            return _OPEN, False
        if mine.named is not None:
            return mine.named, mine.doubtful
        return (_SAME if mine.text == its.text else _OTHER), mine.doubtful

    # Asking

    def _in_a_row(self, session: SuiteSession) -> list[str]:
        """Send what is malformed; the names of the others, those that are drawn if there are too many."""
        given, original = self._begun(session, "malformed")
        if given is None:
            return []
        near = self._all(original)
        self._sources = {name: each.source for name, each in near.items()}
        bad = {name for name, each in near.items() if self._class(original, each.value)[0] == _MALFORMED}
        if self._sweep.sessions is Sessions.EACH:
            bad.clear()
        row = [self._placed(session, given, near[name], name) for name in self._drawn(bad)]
        before, reasons = session.around(self._method), []
        for scope, one in row:
            answer = self._probed(session, scope, one, {_MALFORMED})
            reasons += [str(answer.reason)] if answer is not None and answer.outcome == "refused" else []
        if bad and all(each.verdict is Verdict.WRONG_REASON for each in self._found):
            self._inert(session, before, reasons)
        twin = Neighbour("the good value itself", "the contract", original, original, moved=False)
        self._probed(session, _valued(given, original, original), twin, {_SAME})
        return self._drawn(near.keys() - bad)

    def _begun(self, session: SuiteSession, label: str) -> tuple[Scope | None, Any]:
        """What stands before a probe with the good value, and that; None, with a finding, where it was not accepted."""
        scope = self._scope(session, label)
        if not self._late:
            scope = _valued(scope, self._original(scope), self._original(scope))
        given = self._given(session, scope, "the good value")
        if given is None:
            return None, None
        return given, self._original(given) if self._late else given.bound["x"]

    def good(self, session: SuiteSession, label: str) -> dict[str, Any] | None:
        """Arguments of the operation with the good value, behind what stands before it; None if that was refused."""
        given, original = self._begun(session, label)
        return None if given is None else self._args(_valued(given, original, original))

    def _placed(self, session: SuiteSession, given: Scope, near: Neighbour, name: str) -> tuple[Scope, Neighbour]:
        """A malformed near miss as it is presented: beside the good value, or where it was stored itself."""
        if "y" not in names_in(list(self._sweep.given)):
            return _valued(given, near.base, near.value), near
        scope = self._scope(session, f"{name}/asked")
        own = self._near(self._original(scope), name) or near
        return self._given(session, _valued(scope, own.base, own.value), name) or given, own

    def _inert(self, session: SuiteSession, before: Mapping[str, Any], reasons: list[str]) -> None:
        """All of them together changed nothing, and left as many records in the audit as their reasons ask for."""
        if self._contract.inertness_of(self._method) is None:
            return
        judged = judge_inert(self._contract, self._method, reasons, before, session.around(self._method))
        if judged is not None:
            text = f"{self._varied.name}: {len(reasons)} malformed near misses in a row: {judged.detail}"
            self._found.append(_Found(judged.verdict, text, judged.expected, judged.received, judged.n))

    def _drawn(self, names: Iterable[str]) -> list[str]:
        """Those that are sent: all, or the number that the sweep gives, chosen by the seed."""
        place = {
            name: self._bench.scope.digits("near", f"{self._sweep.name}/{self._varied.name}/{name}", 16)
            for name in names
        }
        return sorted(sorted(place, key=lambda name: place[name])[: self._sweep.most])

    def _alone_in(self, session: SuiteSession, name: str) -> None:
        """One near miss beside a good value, and where the caller chooses both, a good value beside the near miss."""
        forward = self._scope(session, f"{name}/asked")
        if self._late:
            self._pair(session, forward, name)
            return
        near = self._near(self._original(forward), name)
        if near is None:
            return
        self._pair(session, _valued(forward, near.base, near.value), name)
        if self._storable and not self._uncertain(near.value):
            back = self._scope(session, f"{name}/stored")
            turned = self._near(self._original(back), name)
            if turned is not None and not self._uncertain(turned.value):
                self._pair(session, _valued(back, turned.value, turned.base), name)

    def _uncertain(self, value: Any) -> bool:
        form = self._form(value)
        return not isinstance(form, _Form) or form.doubtful

    def _pair(self, session: SuiteSession, scope: Scope, name: str) -> None:
        given = self._given(session, scope, name)
        if given is None:
            return
        if self._late:
            found = self._near(self._original(given), name)
            if found is None:
                return
            given = _valued(given, found.base, found.value)
        stored, presented = given.bound["x"], given.bound["y"]
        near = Neighbour(name, self._sources.get(name, ""), stored, presented, moved=False)
        due, doubtful = self._class(stored, presented)
        if due == _MALFORMED and self._sweep.sessions is Sessions.ONE:
            return
        before = session.around(self._method) if due == _MALFORMED else {}
        answer = self._probed(session, given, near, {due, *((_MALFORMED,) if doubtful else ())})
        if due == _MALFORMED and answer is not None:
            self._inert(session, before, [str(answer.reason)])
        if answer is not None and answer.effect == "new" and not doubtful and due in (_SAME, _OTHER):
            self._accepted.append((name, near))
        if answer is not None and answer.effect == "new" and self._sweep.again is not None:
            self._asked(session, given, near, self._sweep.again, "asked again: ")

    def _given(self, session: SuiteSession, scope: Scope, name: str) -> Scope | None:
        """What stands before the probe; None, with a finding, where a good call was not accepted."""
        for step in self._sweep.given:
            if "provoke" in step:
                session.provoke(step["provoke"], scope.resolve(step.get("args", {})))
            elif "place" in step:
                session.place(scope.resolve(step["place"]), from_base64url(scope.resolve(step["content"])))
            elif "clock" in step:
                session.clock(step["clock"])
                scope = scope.at(session.now)
            else:
                answer = session.call(step["call"], scope.resolve(step.get("args", {})))
                method = self._contract.methods[step["call"]]
                judged = self._judged(scope, step.get("expect", ex.ACCEPTED), method)
                if judged is not None:
                    stored, what = scope.bound.get("x"), f"{step['call']} with {name}"
                    self._note(Neighbour(what, self._sources.get(name, ""), stored, stored, moved=False), judged)
                    return None
                for label, path in step.get("bind", {}).items():
                    scope = scope.bind(label, at_path({"value": answer.value}, path))
        return scope

    def _probed(self, session: SuiteSession, scope: Scope, near: Neighbour, classes: set[str]) -> Answer | None:
        """Ask, and judge by what the near miss may be; None, with a finding, where the answer is another."""
        due = self._sweep.due
        if _OPEN in classes:
            expected: Mapping[str, Any] = due.get(_OPEN, {"any": [*_options(due.values()), {"outcome": "refused"}]})
        else:
            expected = {"any": _options(due[each] if each in due else due[_OTHER] for each in sorted(classes))}
        return self._asked(session, scope, near, expected, "", classes)

    def _asked(
        self, session: SuiteSession, scope: Scope, near: Neighbour, expected: Mapping[str, Any], what: str,
        classes: set[str] | frozenset[str] = frozenset(),
    ) -> Answer | None:  # fmt: skip
        try:
            args = self._args(scope)
        except (CaseError, UnicodeEncodeError):
            # No bytes can be made of the near miss, so nothing could carry it. Of the good value there must be.
            if near.value == near.base:
                raise
            return None
        self._sent += near.value != near.base
        try:
            answer = session.call(self._sweep.probe["call"], args)
        except NonConformance:
            said = self._bench.records[-1].answer or {}
            if said.get("outcome") != "accepted" or any(each["outcome"] != "refused" for each in _options([expected])):
                raise
            # It came out as it went in, so the answer does not fit the contract either.
            detail, due = "accepted, with an answer that does not fit the contract", ex.describe(expected)
            n = self._bench.records[-1].n
            self._note(near, Judgement(Verdict.FAIL_OPEN, detail=detail, expected=due, received="accepted", n=n))
            return None
        scope = scope.bind("asked", args)
        judged = self._judged(scope, expected)
        if judged is None:
            return answer
        other = {_SAME: _OTHER, _OTHER: _SAME}.get(next(iter(classes), ""), "")
        if len(classes) == 1 and other in self._sweep.due and self._judged(scope, self._sweep.due[other]) is None:
            taken = "taken for the same" if other == _SAME else "taken apart"
            verdict = Verdict.FAIL_OPEN if other == _SAME else Verdict.OVER_REFUSAL
            judged = replace(judged, detail=taken, verdict=min(judged.verdict, verdict, key=lambda each: each.rank))
        self._note(near, replace(judged, detail=f"{what}{judged.detail}"))
        # A refusal for another reason is inert as well.
        return answer if judged.verdict is Verdict.WRONG_REASON and answer.outcome == "refused" else None

    def _judged(self, scope: Scope, expected: Mapping[str, Any], method: Method | None = None) -> Judgement | None:
        """The judgement of the last answer, which is of the swept method unless another is given."""
        record, method = self._bench.records[-1], method or self._method
        return ex.judge_answer(record, expected, scope, step={}, kind=CaseKind.REFUSAL, method=method)

    def _note(self, near: Neighbour, judged: Judgement | None) -> None:
        if judged is None:
            return
        beside = "" if near.base == near.value else f" beside {_shown(near.base)}"
        source = f" ({near.source})" if near.source else ""
        text = f"{self._varied.name}: {near.name}, {_shown(near.value)}{beside}{source}: {judged.detail}"
        self._found.append(_Found(judged.verdict, text, judged.expected, judged.received, judged.n))


def _nodes(value: Any) -> Iterator[Any]:
    """A JSON value, and every value in it."""
    yield value
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for each in inner:
        yield from _nodes(each)


def _valued(scope: Scope, stored: Any, presented: Any) -> Scope:
    return scope.bind("x", stored).bind("y", presented)


def _options(expected: Any) -> list[Mapping[str, Any]]:
    return [option for each in expected for option in ex.alternatives(each)]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
