"""Requests in a row, as the links of the OpenAPI document lead: what one answer tells, the next one asks for."""

from __future__ import annotations

from typing import Any, Protocol

import requests
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import Flaky
from hypothesis.reporting import with_reporter
from hypothesis.stateful import run_state_machine_as_test
from schemathesis import BaseSchema, Case
from schemathesis import Response as Told

from holdfast.conformance.cases.record import Finding
from holdfast.conformance.fuzz.exchange import Response

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
    """Follow links for about `count` requests. Raises Finding.

    An id that an implementation draws is another one each time, and Hypothesis gives up where it notices that. All that
    was sent is judged by then; the rest is drawn anew.
    """
    sent, found = 0, list[Finding]()
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
            except Finding as finding:
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
        chosen = settings(
            max_examples=max(1, (count - sent) // _STEPS),
            stateful_step_count=_STEPS,
            database=None,
            deadline=None,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        try:
            with with_reporter(lambda _: None):
                run_state_machine_as_test(seed(start + number)(Following), settings=chosen)
        except Flaky:
            if found:
                raise found[0] from None
            continue
        return
