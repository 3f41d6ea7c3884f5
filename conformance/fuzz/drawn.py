"""Requests that schemathesis draws from the OpenAPI document of a contract, and the order in which links lead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky, Unsatisfiable
from schemathesis import APIOperation, BaseSchema, Case, GenerationMode

from holdfast.conformance.cases.record import Finding
from holdfast.conformance.fuzz.exchange import Request
from holdfast.specs import Contract, Method
from holdfast.specs.binding import SESSION, route_of
from holdfast.specs.openapi import openapi_of

_NOWHERE = "http://holdfast.invalid"
# What a client adds by itself.
_OWN = frozenset({"user-agent", "accept-encoding", "connection", "content-length", "accept", "host"})
_SHRUNK = (Phase.generate, Phase.shrink)
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
    """Check requests that fit the document, and others that do not. Raises the Finding of the smallest that fails."""
    for mode, part in ((GenerationMode.POSITIVE, count // 4), (GenerationMode.NEGATIVE, count - count // 4)):
        run(operation.as_strategy(generation_mode=mode), count=part, start=start, check=check)


def run(strategy: Any, *, count: int, start: int, check: Callable[[Any], None]) -> None:
    """Check `count` examples of a strategy, the same for the same `start`. Raises Finding."""
    found: list[Finding] = []

    def noted(case: Any) -> None:
        try:
            check(case)
        except Finding as finding:
            found.append(finding)
            raise

    given_to: Callable[[], None] = given(strategy)(noted)  # type: ignore[no-untyped-call]
    chosen = settings(
        max_examples=max(1, count),
        database=None,
        deadline=None,
        phases=_SHRUNK,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
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


def request_of_case(case: Case[Any]) -> Request:
    """The request of a drawn case."""
    kwargs = case.as_transport_kwargs(base_url=_NOWHERE)
    whole = requests.Request(**{name: kwargs[name] for name in _TAKEN if name in kwargs}).prepare()
    body = whole.body if isinstance(whole.body, bytes) else str(whole.body or "").encode("utf-8", "surrogatepass")
    added = [(name, value) for name, value in whole.headers.items() if name.lower() not in _OWN]
    request = Request(str(whole.method), whole.path_url, body).without("Content-Type")
    named = [(str(name), _text(value)) for name, value in added if not name.lower().startswith("x-schemathesis")]
    return request.with_headers(*named) if named else request


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")
