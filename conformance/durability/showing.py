"""What an adapter shows of a workload: the facts, asked of the adapter or read by the harness in the store itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from holdfast.conformance.cases.reporting import report_of
from holdfast.conformance.cases.rows import store_operand
from holdfast.conformance.cases.values import Scope, at_path
from holdfast.conformance.durability.workload import fact_name, facts_of_rows, rows_in, text_of, with_gone
from holdfast.conformance.faults.subject import Facts, SubjectError, SubjectHangError, SubjectPartlyError
from holdfast.conformance.session import Talk
from holdfast.conformance.steps.inspect import INSPECT
from holdfast.specs import Contract
from holdfast.specs.faults import FaultWorkload


class Showing:
    """The facts of one running adapter. `value` asks it for the value of a method, `run` carries a talk out.

    Both raise SubjectError. `known` are the names of the facts that the operations set, where these were learned.
    """

    def __init__(
        self,
        contract: Contract,
        spec: FaultWorkload,
        scopes: Mapping[int, Scope],
        known: AbstractSet[str],
        value: Callable[[str, Mapping[str, Any]], Any],
        run: Callable[[Talk[Any]], Any],
    ) -> None:
        self._contract, self._spec, self._scopes, self._known = contract, spec, scopes, known
        self._value, self._run = value, run
        # What was observed for the facts of one moment; a SubjectError where that failed.
        self._observed: dict[str, Any] = {}
        # Whether facts are asked for from the last one on, and what methods said of operations before that.
        self._turned = False
        self._first: dict[str, dict[str, str]] = {}

    def begin(self, *, turned: bool) -> None:
        """The adapter was started: ask for what comes first behind a crash. Raises SubjectError."""
        self._turned = turned
        self._first = {name: ask() for name, ask in self._asking_for_told()}

    def facts(self, runs: Callable[[], bool]) -> Facts:
        """All of them; `runs` says whether the adapter still does. Raises SubjectError, SubjectPartlyError."""
        facts: dict[str, str] = {}
        shown: set[str] = set()
        refusal: SubjectError | None = None
        # The facts of one observation belong to one moment.
        self._observed.clear()
        for name, ask in self._asking():
            try:
                facts |= ask()
                shown.add(name)
            except SubjectHangError:
                raise
            except SubjectError as error:
                refusal = refusal or error
                if not runs():
                    break
        facts = with_gone(facts, (name for name in self._known if name.split(" ", 1)[0] in shown))
        if refusal is None:
            return facts
        if shown:
            partly = SubjectPartlyError(str(refusal), facts, lambda one: one.split(" ", 1)[0] in shown)
            raise partly from refusal.__cause__
        raise refusal

    def _asking(self) -> Iterator[tuple[str, Callable[[], dict[str, str]]]]:
        """Each fact by its name, and how it is asked for."""
        facts = list(self._spec.facts.items())
        for name, fact in reversed(facts) if self._turned else facts:
            yield name, partial(self._rows if "rows" in fact else self._each, name, fact)
        for name, ask in self._asking_for_told():
            found = self._first.pop(name, None)
            yield name, ask if found is None else partial(dict, found)

    def _asking_for_told(self) -> Iterator[tuple[str, Callable[[], dict[str, str]]]]:
        for number, scope in self._scopes.items():
            for name, told in self._spec.step(number).get("told", {}).items():
                # One word: what stands before the blank is the name of the fact.
                word = fact_name(name, number).replace(" ", "-")
                yield word, partial(self._told, word, told, scope)

    def _told(self, name: str, told: Mapping[str, Any], scope: Scope) -> dict[str, str]:
        value = at_path(self._value(told["ask"], scope.resolve(told["args"])), told["value"])
        return {f"{name} value": str(value)}

    def _rows(self, name: str, fact: Mapping[str, Any]) -> dict[str, str]:
        rows = rows_in(self._inspected(fact) if "inspect" in fact else self._once(fact["observe"]), fact["rows"])
        if rows is None:
            raise SubjectError(f"expected rows under {fact['rows']!r} of {fact.get('observe', 'the store')}, got none")
        return facts_of_rows(name, fact, rows)

    def _once(self, method: str) -> Any:
        """The value of an observation, which all facts of one moment share; so do they its failure."""
        if method not in self._observed:
            try:
                self._observed[method] = self._value(method, {})
            except SubjectHangError:
                raise
            except SubjectError as error:
                self._observed[method] = error
        found = self._observed[method]
        if isinstance(found, SubjectError):
            raise found
        return found

    def _inspected(self, fact: Mapping[str, Any]) -> Any:
        """What the harness reads in the store, behind a question that has its owner open it. Raises SubjectError."""
        inspected = "its store, inspected"
        if inspected not in self._observed:
            self._once(fact["behind"])
            _, found = self._run(report_of(INSPECT, store_operand(self._contract), "inspect store"))
            self._observed[inspected] = found
        found = self._observed[inspected]
        if not found["exists"] or found["error"] or found["integrity"] != "ok":
            raise SubjectError(f"its store cannot be read: {found['error'] or found['integrity'] or 'it is not there'}")
        return found

    def _each(self, name: str, fact: Mapping[str, Any]) -> dict[str, str]:
        found: dict[str, str] = {}
        for number, scope in self._scopes.items():
            value = text_of(at_path(self._value(fact["ask"], scope.resolve(fact["args"])), fact["value"]))
            if value != fact["undone"]:
                found[fact_name(name, number)] = value
        return found
