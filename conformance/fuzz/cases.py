"""The cases of `holdfast fuzz`: for each method its drawn requests, for each operation those that are nearly good."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis.errors import Flaky, Unsatisfiable
from hypothesis.reporting import with_reporter
from hypothesis.stateful import run_state_machine_as_test
from schemathesis import APIOperation, BaseSchema, Case, GenerationMode
from schemathesis import Response as Told

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.near_miss import Swept, varied_of
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.record import NonConformance
from holdfast.conformance.cases.values import names_in
from holdfast.conformance.fuzz.exchange import SECRETS, FuzzRequest, Response, send
from holdfast.conformance.fuzz.judge import Due, Shown, effect_of, finding, shown_by
from holdfast.conformance.fuzz.misuse import closed, declares_session, empty_ones, misuses, request_of
from holdfast.conformance.run.plan import Form, PlannedCase
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Contract, Method, strictjson
from holdfast.specs.binding import MALFORMED, SESSION, openapi_of, route_of
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.model import Group
from holdfast.specs.neighbours import Sweep
from holdfast.specs.schema import explain
from holdfast.specs.strictjson import canonical

# Requests that schemathesis draws from the OpenAPI document of a contract, and the order in which links lead

_NOWHERE = "http://holdfast.invalid"
# What a client adds by itself.
_OWN = frozenset({"user-agent", "accept-encoding", "connection", "content-length", "accept", "host"})
_TAKEN = ("method", "url", "headers", "files", "data", "json", "params", "auth", "cookies")


def schema_of(contract: Contract, methods: Sequence[Method]) -> BaseSchema:
    """The document of these methods, without what the kit adds to each request itself."""
    document = openapi_of(contract)
    kept = {route_of(contract, method).path for method in methods}
    document["paths"] = {path: entry for path, entry in document["paths"].items() if path in kept}
    for entry in document["paths"].values():
        for operation in entry.values():
            operation["parameters"] = [each for each in operation["parameters"] if each["name"] != SESSION]
    return schemathesis.openapi.from_dict(document)


def operation_of(schema: BaseSchema, contract: Contract, method: Method) -> APIOperation[Any, Any, Any, Any]:
    """A method in the document."""
    route = route_of(contract, method)
    return schema[route.path][route.method]


def each_drawn(
    operation: APIOperation[Any, Any, Any, Any], *, count: int, start: int, check: Callable[[Case[Any]], None]
) -> None:
    """Check requests that fit the document, and others. Raises the NonConformance of the smallest that fails."""
    for mode, part in ((GenerationMode.POSITIVE, count // 4), (GenerationMode.NEGATIVE, count - count // 4)):
        run(operation.as_strategy(generation_mode=mode), count=part, start=start, check=check)


def run(strategy: Any, *, count: int, start: int, check: Callable[[Any], None]) -> None:
    """Check `count` examples of a strategy, the same for the same `start`. Raises NonConformance."""
    found: list[NonConformance] = []

    def noted(case: Any) -> None:
        try:
            check(case)
        except NonConformance as finding:
            found.append(finding)
            raise

    given_to: Callable[[], None] = given(strategy)(noted)  # type: ignore[no-untyped-call]
    chosen = _settings(count, phases=(Phase.generate, Phase.shrink), report_multiple_bugs=False)
    try:
        test: Callable[[], None] = seed(start)(chosen(given_to))
        test()
    except Unsatisfiable:
        # No request of this sort breaks the document.
        return
    except (Flaky, BaseExceptionGroup):
        # The state of the server decides too: what was seen first is what was seen.
        if not found:
            raise
        raise found[0] from None


def _settings(count: int, **more: Any) -> settings:
    """So many examples, which depend on nothing but the seed."""
    known: Any = {"database": None, "deadline": None, "suppress_health_check": list(HealthCheck)}
    return settings(max_examples=max(1, count), **known, **more)


def request_of_case(case: Case[Any]) -> FuzzRequest:
    """The request of a drawn case."""
    kwargs = case.as_transport_kwargs(base_url=_NOWHERE)
    whole = requests.Request(**{name: kwargs[name] for name in _TAKEN if name in kwargs}).prepare()
    body = whole.body if isinstance(whole.body, bytes) else str(whole.body or "").encode("utf-8", "surrogatepass")
    added = [(name, value) for name, value in whole.headers.items() if name.lower() not in _OWN]
    request = FuzzRequest(str(whole.method), whole.path_url, body).without("Content-Type")
    named = [(str(name), _text(value)) for name, value in added if not name.lower().startswith("x-schemathesis")]
    return request.with_headers(*named) if named else request


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


# Requests in a row, as the links of the OpenAPI document lead: what one answer tells, the next one asks for

_STEPS = 12
# How often it begins anew where Hypothesis has given up.
_TRIES = 8


class Asks(Protocol):
    """Sends a drawn request and judges what comes."""

    def __call__(self, case: Case[Any], *, led: bool) -> Response:
        """`led`: a link led to it."""


def has_links(schema: BaseSchema) -> bool:
    """Whether an answer of the contract tells what another request takes."""
    return bool(schema.statistic.transitions.total)


def follow(schema: BaseSchema, *, count: int, start: int, ask: Asks) -> None:
    """Follow links for about `count` requests. Raises NonConformance.

    An id that an implementation draws is another one each time, and Hypothesis gives up where it notices that. All that
    was sent is judged by then; the rest is drawn anew.
    """
    sent, found = 0, list[NonConformance]()
    machine: Any = schema.as_state_machine()

    class Following(machine):  # type: ignore[misc]
        def step(self, given: Any) -> Any:
            self._led = given.transition is not None
            return super().step(given)

        def call(self, case: Case[Any], **_: Any) -> Told:
            nonlocal sent
            sent += 1
            try:
                answered = ask(case, led=self._led)
            except NonConformance as finding:
                found.append(finding)
                raise
            headers: dict[str, list[str]] = {}
            for name, value in answered.headers:
                headers.setdefault(name.lower(), []).append(value)
            request = requests.Request(case.method, answered.url).prepare()
            return Told(answered.status, headers, answered.body, request, elapsed=0.0, verify=False)

        def validate_response(self, *_: Any, **__: Any) -> None:
            """`ask` has judged it."""

    for number in range(_TRIES):
        chosen = _settings((count - sent) // _STEPS, stateful_step_count=_STEPS, phases=(Phase.generate,))
        try:
            with with_reporter(lambda _: None):
                run_state_machine_as_test(seed(start + number)(Following), settings=chosen)
        except Flaky:
            if found:
                raise found[0] from None
            continue
        return


Test = Callable[[Bench], None]
# So many digits of the seed of a run decide what is drawn.
_DIGITS = 16
# Records of requests that went well are kept in such a number; the others are counted.
_KEPT = 8
# Of the requests that links are to lead to at least such a part has to come.
_LEAST = 4
# A longer body does not fit into one request of the harness to its bridge.
_LONGEST = 500_000
# How a value begins that is another one in each request.
_DRAWN = "${"
_KEY_HEADERS = ("Idempotency-Key", "X-Request-Id")
# With which a request says that it is another attempt, or a special one.
_ATTEMPTS = (
    *(("X-Retry", "1"), ("X-Retry-Count", "2"), ("Retry-Attempt", "2"), ("X-Attempt", "2"), ("X-Force", "true")),
    *(("X-Debug", "1"), ("X-Test", "1"), ("X-Internal", "1"), ("X-Forwarded-For", "127.0.0.1")),
    *(("Cache-Control", "no-cache"), ("If-None-Match", "*"), ("Prefer", "respond-async"), ("Expect", "100-continue")),
)


def fuzz_cases(contract: Contract, *, count: int, lacking: Collection[str] = ()) -> Iterator[tuple[PlannedCase, Test]]:
    """Every case with its test; `count` is how many requests are drawn for all methods together.

    None asks for a method that the implementation does not claim.
    """
    # A provocation may hang.
    methods = [
        each for each in contract.methods.values() if each.name not in lacking and each.group is not Group.PROVOCATION
    ]
    if not methods:
        return
    share = max(1, count // len(methods))
    schema = schema_of(contract, methods)
    for method in methods:
        drawn = partial(_drawn, schema=schema, method=method, count=share)
        yield _planned(contract, f"drawn-requests-of-{method.name}"), drawn
    if has_links(schema):
        linked = partial(_linked, schema=schema, methods=methods, count=share)
        yield _planned(contract, "requests-that-links-lead-to"), linked
    for method in methods:
        sweep = good_sweep(contract, method)
        if sweep is not None:
            yield _planned(contract, f"nearly-good-requests-of-{method.name}"), partial(_misused, sweep=sweep)
            if _is_known_again(contract, method) or _varies(sweep):
                yield _planned(contract, f"a-header-decides-nothing-of-{method.name}"), partial(_keyed, sweep=sweep)


def _planned(contract: Contract, name: str) -> PlannedCase:
    name = name.replace("_", "-")
    title = name.replace("-", " ")
    return PlannedCase(
        f"{contract.name}/http/{name}", contract.name, (), title, Form.SUITE, frozenset(), generated=True
    )


def good_sweep(contract: Contract, method: Method) -> Sweep | None:
    """The sweep whose good value is accepted, as new if there is one; None where no sweep asks this method so."""
    declared = () if contract.neighbours is None else contract.neighbours.sweeps.values()
    mine = [each for each in declared if each.probe["call"] == method.name and _is_accepted(each)]
    mine.sort(key=lambda each: (not _is_new(each), len(each.given)))
    return mine[0] if mine else _scripted(contract, method)


def _scripted(contract: Contract, method: Method) -> Sweep | None:
    """A script that begins with a call of this method that has to be accepted, as a sweep of nothing."""
    for case in contract.cases:
        step = case.when[0]
        expected = step.get("expect", {})
        if step.get("call") != method.name or case.given or case.surface != "ready" or case.config:
            continue
        if {*step} <= {"call", "args", "expect", "bind", "label"} and expected.get("outcome") == "accepted":
            due = {"outcome": "accepted", **{name: expected[name] for name in ("effect",) if name in expected}}
            return Sweep(
                name=case.id, clause=case.clause, title=case.title, probe=step, due={"same": due}, values=case.values
            )
    return None


def _same(sweep: Sweep) -> Mapping[str, Any]:
    return sweep.due.get("same", ex.ACCEPTED)


def _is_accepted(sweep: Sweep) -> bool:
    return all(each.get("outcome") == "accepted" for each in ex.alternatives(_same(sweep)))


def _is_new(sweep: Sweep) -> bool:
    return all(each.get("effect") == "new" for each in ex.alternatives(_same(sweep)))


def _varies(sweep: Sweep) -> bool:
    """Whether two good requests of it differ: something in them is drawn."""
    raw, seen = [sweep.probe.get("args", {}), sweep.original], set[str]()
    while new := names_in(raw) & sweep.values.keys() - seen:
        seen |= new
        raw += [sweep.values[name] for name in sorted(new)]
    return _DRAWN in str(raw)


class _Asking:
    """Requests of one method in one session. What was refused leaves the state alone, and it is looked at each time."""

    def __init__(self, bench: Bench, session: SuiteSession, method: Method) -> None:
        self.bench, self.session, self.method = bench, session, method
        self.route = route_of(bench.contract, method)
        self.sent = 0
        self.seen: dict[str, Any] = {}
        self.look()

    def look(self) -> None:
        """Note the state as it is."""
        self.seen = self.session.around(self.method)

    def ask(self, request: FuzzRequest, due: Due) -> tuple[Shown, Response]:
        """Send a request and judge what came, and what it left. Raises NonConformance."""
        if due.refused:
            # A good request may be refused for what they say.
            request = request.with_headers(*SECRETS)
        response = send(self.session, request)
        self.sent += 1
        shown = shown_by(self.method, self.route, request, response, due)
        before = self.seen
        self.look()
        if shown is Shown.REFUSED or self.method.group is Group.OBSERVATION:
            self._must_be_inert(before, request, response, f"{due.what}: {shown.value}")
        del self.bench.records[_KEPT:]
        return shown, response

    def _must_be_inert(self, before: Mapping[str, Any], request: FuzzRequest, response: Response, what: str) -> None:
        """A refusal, and an observation whatever came of it, leaves everything but the audit as it was."""
        inertness = self.bench.contract.inertness_of(self.method)
        audit = None if inertness is None else inertness.audit
        kept = [{name: value for name, value in seen.items() if name != audit} for seen in (before, self.seen)]
        if canonical(kept[0]) != canonical(kept[1]):
            why = f"{what}, and the state is another"
            raise finding(Verdict.STATE_LEAK, why, "the same state", request, response)


def _drawn(bench: Bench, *, schema: Any, method: Method, count: int) -> None:
    """Requests that schemathesis draws: what breaks the document is refused, what was accepted is not new again."""
    contract = bench.contract
    with bench.session(hurried=False) as session:
        asking = _Asking(bench, session, method)

        def check(case: Case[Any]) -> None:
            request = request_of_case(case)
            assume(len(request.body) <= _LONGEST)
            violates = _violates(method, asking.route, case, request)
            due = Due("a drawn request", refused=violates, named=violates and MALFORMED in method.reasons)
            if violates and not _is_object(request.body):
                due = Due("a drawn request", refused=True)
            shown, response = asking.ask(request, due)
            if (
                shown is Shown.ACCEPTED
                and effect_of(asking.route, response) == "new"
                and _is_known_again(contract, method)
            ):
                _must_not_be_new(asking, request)

        start = int(bench.scope.digits("drawn", method.name, _DIGITS), 16)
        each_drawn(operation_of(schema, contract, method), count=count, start=start, check=check)
        if not asking.sent:
            bench.fail("not_reached", "no request was drawn")
        bench.note(f"{asking.sent} requests")


def _linked(bench: Bench, *, schema: Any, methods: Sequence[Method], count: int) -> None:
    """What one answer tells is asked for by the next request. A request that no link leads to is a good one, if any."""
    contract = bench.contract
    sweeps = {method.name: good_sweep(contract, method) for method in methods}
    by_links = 0
    with bench.session(hurried=False) as session:
        asking = {method.name: _Asking(bench, session, method) for method in methods}

        def ask(case: Case[Any], *, led: bool) -> Response:
            nonlocal by_links
            mine = asking[case.operation.definition.raw["operationId"]]
            request, what = request_of_case(case), "a request that a link led to"
            sweep = None if led else sweeps[mine.method.name]
            if sweep is not None:
                args = _good(bench, session, sweep, f"linked {mine.sent}")
                request, what = request_of(mine.route, args), "a good request"
            assume(len(request.body) <= _LONGEST)
            mine.look()
            by_links += led
            return mine.ask(request, Due(what))[1]

        start = int(bench.scope.digits("drawn", "links", _DIGITS), 16)
        follow(schema, count=count, start=start, ask=ask)
        sent = sum(each.sent for each in asking.values())
        if sent < count // _LEAST:
            bench.fail("not_reached", f"{sent} requests came of {count} that were to be drawn")
        bench.note(f"{sent} requests, {by_links} of them by links")


def _is_object(body: bytes) -> bool:
    try:
        return isinstance(strictjson.loads(body), dict)
    except StrictJsonError:
        return False


def _violates(method: Method, route: Any, case: Case[Any], request: FuzzRequest) -> bool:
    """Whether a drawn request breaks the document, by the schema of the method itself."""
    if not _is_object(request.body):
        return True
    body = strictjson.loads(request.body)
    places = {**(case.path_parameters or {}), **route.read(dict(request.headers))}
    return explain(method.args, {**body, **places}) is not None


def _is_known_again(contract: Contract, method: Method) -> bool:
    """Whether the contract says that the same request once more has no second effect."""
    if contract.inertness_of(method) is None:
        return False
    if "prior" in method.effects:
        return True
    declared = () if contract.neighbours is None else contract.neighbours.sweeps.values()
    return any(
        each.probe["call"] == method.name
        and any(step.get("call") == method.name for step in each.given)
        and not _is_new(each)
        for each in declared
    )


def _must_not_be_new(asking: _Asking, request: FuzzRequest) -> None:
    _, response = asking.ask(request, Due("the same request again"))
    if effect_of(asking.route, response) == "new":
        why = "the same request is new a second time"
        raise finding(Verdict.FAIL_OPEN, why, "prior, or a refusal", request, response)


def _misused(bench: Bench, *, sweep: Sweep) -> None:
    """All of them are refused and change nothing: the good request after them is accepted as if they had not been."""
    contract = bench.contract
    method = contract.methods[sweep.probe["call"]]
    with bench.session(hurried=False) as session:
        args = _good(bench, session, sweep, "misused")
        asking = _Asking(bench, session, method)
        for each in misuses(method, asking.route, args):
            asking.ask(each.request, each.due)
        _must_be_done(asking, args, sweep, "the good request after all that was refused")
        good = request_of(asking.route, args)
        for each in empty_ones(method, good):
            asking.ask(each.request, each.due)
        if declares_session(method):
            session.end()
            session.reopen()
            asking.look()
            of_closed = closed(good)
            asking.ask(of_closed.request, of_closed.due)
        bench.note(f"{asking.sent} requests")


def _keyed(bench: Bench, *, sweep: Sweep) -> None:
    """Two requests with one key in a header are two, and one request with two keys is one."""
    contract = bench.contract
    method = contract.methods[sweep.probe["call"]]
    is_known, are_two = _is_known_again(contract, method), _are_two(bench, method, sweep)
    if not (is_known or are_two):
        bench.fail(
            "not_reached", "no request of it is known again, and no two good ones are accepted one after the other"
        )
    for name in _KEY_HEADERS:
        with bench.session(hurried=False) as session:
            first = _good(bench, session, sweep, f"first {name}")
            second = _good(bench, session, sweep, f"second {name}")
            asking = _Asking(bench, session, method)
            _must_be_done(asking, first, sweep, "a request", (name, "key-1"))
            if is_known:
                for header in ((name, "key-2"), (name, "key-1"), *_ATTEMPTS):
                    _must_not_be_new(asking, request_of(asking.route, first).with_headers(header))
            if are_two:
                _must_be_done(asking, second, sweep, f"another request with the same {name}", (name, "key-1"))


def _are_two(bench: Bench, method: Method, sweep: Sweep) -> bool:
    """Whether both are accepted without such a header, as two."""
    with bench.session(hurried=False) as session:
        first, second = (_good(bench, session, sweep, f"{number} alone") for number in ("first", "second"))
        asking = _Asking(bench, session, method)
        _must_be_done(asking, first, sweep, "a request")
        try:
            _must_be_done(asking, second, sweep, "another request")
        except NonConformance as finding:
            if finding.judgement.verdict.is_incomplete:
                raise
            return False
    return canonical(first) != canonical(second)


def _good(bench: Bench, session: SuiteSession, sweep: Sweep, label: str) -> dict[str, Any]:
    if not sweep.leaves and sweep.value is None:
        side = f"http/{sweep.name}/{label}"
        scope = replace(bench.scope, side=side, defined=sweep.values, now=session.now, opened=session.now)
        made: dict[str, Any] = scope.resolve(sweep.probe.get("args", {}))
        return made
    varied = next(iter(varied_of(bench.contract, sweep)))
    args = Swept(bench, sweep, varied).good(session, label)
    if args is None:
        bench.fail("not_reached", f"what stands before a good {sweep.probe['call']} was not accepted")
    return args


def _must_be_done(asking: _Asking, args: Mapping[str, Any], sweep: Sweep, what: str, *headers: tuple[str, str]) -> None:
    request, before = replace(request_of(asking.route, args), packets=True).with_headers(*headers), asking.seen
    shown, response = asking.ask(request, Due(what))
    effect, due = effect_of(asking.route, response), _same(sweep)
    fits = any(each.get("effect", effect) == effect for each in ex.alternatives(due))
    # What is new is seen; an answer that was kept from another request is not.
    is_there = not (before and effect == "new" and _is_new(sweep)) or canonical(before) != canonical(asking.seen)
    if shown is Shown.ACCEPTED and fits and is_there:
        return
    verdict = Verdict.FAIL_OPEN if shown is Shown.ACCEPTED else Verdict.OVER_REFUSAL
    why = f"{what} is {shown.value} {effect or ''}{'' if is_there else ', and changed nothing'}"
    raise finding(verdict, why, ex.describe(due), request, response)
