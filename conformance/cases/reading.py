"""One side of a case while it is read: what the kinds of steps share. Each `Step` in `steps/` says what it means."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.expect import shown
from holdfast.conformance.cases.record import Judgement, NonConformance, Record, Side
from holdfast.conformance.cases.session import START, Session, SessionScript, call_request
from holdfast.conformance.cases.values import CaseError, Scope, at_path, is_missing, put_path
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.specs import Case, Contract, Method

Interpretation = SessionScript[Judgement]


@dataclass(slots=True)
class State:
    """The state of a side that changes from step to step."""

    scope: Scope
    # The number of the last record.
    last: int | None = None
    phase: str = "open"
    # Started calls that were answered where they had to wait. `finish` judges them by their answers.
    hasty: set[str] = field(default_factory=set)
    # The case itself changed the files of the store, or broke it by a provocation, or asked for none.
    damaged: bool = False
    # The calls that were started and not finished, by name, with their workers: a commit may be open.
    under_way: dict[str, int] = field(default_factory=dict)
    # By name, the record that a value came with; by observation, the record that shows the last one.
    bound_at: dict[str, int] = field(default_factory=dict)
    observed: dict[str, int] = field(default_factory=dict)
    # Findings after which the side goes on, because what it finds later may be graver.
    mild: list[Judgement] = field(default_factory=list)
    # Names of values that came with such an answer: what is asked with them proves nothing.
    doubtful: set[str] = field(default_factory=set)
    # Why the side ends here and conforms: the store refused to hold what the case is about.
    ended: str | None = None


class CaseInterpreter:
    """One side of one case: its session, its names, and its treatment of a step's requests and answers."""

    def __init__(
        self, contract: Contract, case: Case, side: Side, *, workers: int, seed: str, not_claimed: Mapping[str, str]
    ) -> None:
        """`workers` are those of the case and one to observe through, if it needs one."""
        self.contract = contract
        self.case = case
        self.side = side
        self.workers = workers
        scope = Scope(seed=seed, case=case.id, side=side.value, defined=case.values, opened=START, now=START)
        self.state = State(scope)
        surface, config = self._opening()
        self.state.damaged = surface == "absent"
        self.session = Session(
            contract,
            digits=scope.digits("adapter", "", 16),
            not_claimed=not_claimed,
            config=config,
            surface=surface,
        )

    def _opening(self) -> tuple[str, Mapping[str, str]]:
        """The surface and the config that this side opens with."""
        surface, config = self.case.surface, dict(self.case.config)
        twin = self.case.twin
        if self.side is Side.TWIN and twin is not None and twin.step == "open":
            target: dict[str, Any] = {"open": {"surface": surface, "config": config}}
            put_path(target, twin.path, self.state.scope.resolve(twin.value))
            surface, config = target["open"]["surface"], target["open"]["config"]
        return surface, config

    # The twin

    def is_twin_end(self, step: Mapping[str, Any]) -> bool:
        """Whether the twin, which must be accepted, ends at this step."""
        twin = self.case.twin
        return self.side is Side.TWIN and twin is not None and step.get("label") == twin.at

    def is_twin_change(self, step: Mapping[str, Any]) -> bool:
        """Whether this is the step that the twin changes."""
        twin = self.case.twin
        return self.side is Side.TWIN and twin is not None and step.get("label") == twin.step

    def _cause(self, step: Mapping[str, Any]) -> str | None:
        """The argument that alone decides between this step's refusal and its accepted twin, if it is one."""
        twin = self.case.twin
        if self.side is Side.TWIN or twin is None or not twin.step == twin.at == step.get("label"):
            return None
        return twin.path.split(".")[1] if twin.path.startswith("args.") else None

    def changed(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """The step for this side: the twin changes one path and one expectation."""
        twin = self.case.twin
        if self.side is not Side.TWIN or twin is None or "label" not in step:
            return step
        # A deep copy: the path may lead into a part that the contract's own step would share.
        changed = copy.deepcopy(dict(step))
        if step["label"] == twin.step:
            if twin.path == "args" or twin.path.startswith("args."):
                # This change waits until the arguments are resolved, because the path may lie inside a copied value.
                changed["$twin"] = (twin.path, twin.value)
            else:
                put_path(changed, twin.path, twin.value)
        if step["label"] == twin.at:
            changed["expect"] = twin.expect
            changed.pop("malformed", None)
        return changed

    # Calls

    def request(self, step: Mapping[str, Any], name: str, scope: Scope) -> tuple[Method, dict[str, Any]]:
        """The method that a step calls, and the request. Raises CaseError."""
        method = self.contract.methods[name]
        target = {"args": scope.resolve(step.get("args", {}))}
        if "$twin" in step:
            path, value = step["$twin"]
            put_path(target, path, scope.resolve(value))
        fits = method.args.is_valid(target["args"])
        if fits == bool(step.get("malformed")):
            wrong = (
                "fit the schema though marked malformed"
                if fits
                else "do not fit the schema of the method, and `malformed: true` is not said"
            )
            raise CaseError(f"the arguments of {name} {wrong}")
        return method, call_request(name, target["args"])

    def settle(
        self, record: Record, method: Method, expect: Mapping[str, Any], step: Mapping[str, Any], scope: Scope
    ) -> SessionScript[None]:
        """Judge the answer to a call. A worker whose death was expected is dropped. Raises NonConformance."""
        self.hold_well_formed(record, method)
        judgement = ex.judge_answer(record, expect, scope, step=step, kind=self.case.kind, method=method)
        judgement = judgement or ex.judge_field(record, method, self.contract.reasons, self._cause(step))
        if judgement is None:
            if record.answer is None:
                yield from self.session.forget(record.worker)
            return
        if self.is_twin_end(step) and judgement.verdict in {Verdict.OVER_REFUSAL, Verdict.WRONG_REASON}:
            detail = f"the twin, which must be accepted, was not: {judgement.detail}; the refusal proves nothing"
            raise NonConformance(replace(judgement, verdict=Verdict.OVER_REFUSAL, silence=None, detail=detail))
        if not ex.is_effect_as_due(record, expect):
            raise NonConformance(judgement)
        self.go_on(judgement, step, mild=record.answer is not None and judgement.verdict.is_mild)

    def go_on(self, judgement: Judgement | None, step: Mapping[str, Any], *, mild: bool | None = None) -> None:
        """Keep a finding of a step that changed what it was to change, and go on after it.

        Raises NonConformance where it is not `mild`: by default where it is no wrong answer, for what follows a refusal
        may follow from it. In the preparation of a case none is.
        """
        if judgement is None:
            return
        if mild is None:
            mild = judgement.verdict is Verdict.WRONG_REASON
        if not mild or self.state.phase in {"open", "given"}:
            raise NonConformance(judgement)
        self.state.mild.append(judgement if judgement.n is not None else replace(judgement, n=self.state.last))
        self.state.doubtful |= {*step.get("bind", {})}

    def hold_well_formed(self, record: Record, method: Method) -> None:
        """The answer must fit its method. Raises NonConformance."""
        failure = self.session.failure(record, method)
        if failure is not None and failure.silence is FailureMode.GARBAGE:
            raise NonConformance(failure)

    # What the steps keep

    def bind(self, step: Mapping[str, Any], record: Record, values: Mapping[str, Any] | None = None) -> None:
        """Bind names to parts of an answer, or of `values`. Raises NonConformance where a part is missing."""
        for name, path in step.get("bind", {}).items():
            found = at_path(record.answer if values is None else values, path)
            if is_missing(found):
                detail = f"the answer has no {path}, which later steps need"
                raise NonConformance(Judgement(Verdict.NOT_REACHED, None, detail, path, shown(record), n=record.n))
            self.state.scope = self.state.scope.bind(name, found)
            self.state.bound_at[name] = record.n

    def touches(self, path: str) -> None:
        """Note a file or folder that the case changes: the store may be unreadable from here on."""
        store = None if self.contract.inspection is None else self.contract.inspection.path
        if store is not None and (path.startswith(store) or store.startswith(f"{path}/")):
            self.state.damaged = True

    def may_wait(self, record: Record) -> bool:
        """Whether an observation was answered with `fault` while a commit may be open (docs/adapter-protocol.md)."""
        return bool(self.state.under_way) and _is_fault(record)

    def shows_nothing(self, record: Record) -> bool:
        """Whether an observation around a call was answered with `fault` at a moment when nothing may be readable.

        That is as in `may_wait`, or after the case itself took the store away.
        """
        return (self.state.damaged and _is_fault(record)) or self.may_wait(record)


def raise_if_failed(judgement: Judgement | None) -> None:
    """End the side with a judgement, if there is one. Raises NonConformance."""
    if judgement is not None:
        raise NonConformance(judgement)


def _is_fault(record: Record) -> bool:
    return record.answer is not None and record.answer["outcome"] == "fault"
