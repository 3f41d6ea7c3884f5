"""Adapter protocol v1 over HTTP (docs/http.md): its routes, and the OpenAPI document of a contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.specs.model import Contract, Group, Method
from holdfast.specs.routes import ERROR, FAULT, INDETERMINATE, NO_ARGUMENTS, OK, UNSUPPORTED, Route
from holdfast.specs.schema import published_schema

# The header of a session. Each worker has one of its own, which its client makes up.
SESSION = "Holdfast-Session"
_BASE = "/holdfast/v1"
# The requests of the protocol beside the calls of methods. Their response has the status 200, its body is the answer.
# `call` is for arguments that cannot travel by the route of their method.
REQUESTS = ("hello", "open", "call", "clock", "close")
# Where a request is not what it must be for any answer: no contract has a route with this status.
NO_REQUEST = 428
# The reason for arguments that do not fit their schema, in every contract that has one.
MALFORMED = "REQUEST_MALFORMED"
_STATUSES = {"new": 201, "prior": 200, OK: 200, INDETERMINATE: 504, MALFORMED: 400}
_UNAVAILABLE, _REFUSED = 503, 409


def path_of(request: str) -> str:
    """The path of a request of the protocol."""
    return f"{_BASE}/{request}"


def route_of(contract: Contract, method: Method) -> Route:
    """How a method travels: as its contract says, or as all do that it says nothing of."""
    if method.route is not None:
        return method.route
    outcomes = [*method.effects, *method.reasons, INDETERMINATE] if method.effects else [OK]
    statuses = {name: _status(name) for name in outcomes}
    return Route(method="POST", path=f"/{contract.name}/{method.name}", statuses=statuses, named_reasons=True)


def _status(name: str) -> int:
    return _STATUSES.get(name, _UNAVAILABLE if name.endswith("_UNAVAILABLE") else _REFUSED)


# The document

_VERSION = "3.1.0"
_DEFS, _COMPONENTS = "#/$defs/", "#/components/schemas/"
# Members of a message that HTTP says by itself.
_ELSEWHERE = frozenset({"id"})


def openapi_of(contract: Contract) -> dict[str, Any]:
    """The document of a contract. The same for every contract."""
    paths: dict[str, Any] = {}
    for method in contract.methods.values():
        route = route_of(contract, method)
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(contract, method, route)
    for request in REQUESTS:
        paths[path_of(request)] = {"post": _request(request)}
    shared = next(iter(contract.methods.values())).args.schema.get("$defs", {})
    return {
        "openapi": _VERSION,
        "info": {"title": contract.title, "version": contract.version, "description": contract.summary},
        "paths": paths,
        "components": {"schemas": _moved(shared)},
    }


def _operation(contract: Contract, method: Method, route: Route) -> dict[str, Any]:
    schema = {name: part for name, part in method.args.schema.items() if name not in ("$defs", "x-leaf")}
    members = schema.get("properties", {})
    inside = route.body(members)
    required = [name for name in schema.get("required", ()) if name in inside]
    parameters = [
        {"name": header or name, "in": place, "required": True, "schema": _moved(members[name])}
        for name, place, header in _placed(members, route)
    ]
    body = {**schema, "properties": inside, **({"required": required} if required else {})}
    return {
        "operationId": method.name,
        "summary": method.title,
        **({"description": f"Over a WebSocket at {route.websocket}."} if route.websocket else {}),
        "tags": [method.group.value],
        # A route that a contract declares is one of the product, which knows no sessions.
        "parameters": [*parameters, _session(required=method.route is None)],
        "requestBody": {"required": True, "content": _json(body)},
        "responses": {
            **{
                str(status): _response(contract, method, route, status) for status in sorted({*route.statuses.values()})
            },
            **_ANYWHERE,
        },
    }


def _session(*, required: bool) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1}
    return {"name": SESSION, "in": "header", "required": required, "schema": schema}


# Responses of every route.
_ANYWHERE = {
    str(NO_REQUEST): {"description": "No session of that name is open, or the body is no JSON object."},
    "415": {"description": "The content type is not application/json, or the body has a content encoding."},
    str(NO_ARGUMENTS): {"description": "Arguments of which nothing follows, where no reason says so."},
    str(FAULT): {"description": "An internal error: neither accepted nor refused."},
    str(UNSUPPORTED): {"description": "The implementation does not claim what `capability` names."},
}


def _request(op: str) -> dict[str, Any]:
    """A request of the protocol, by its published schemas."""
    whole = published_schema("protocol-request")["allOf"]
    form = next(each["then"] for each in whole if each["if"]["properties"]["op"]["const"] == op)
    told = published_schema("protocol-hello" if op == "hello" else "protocol-answer")
    return {
        "operationId": f"protocol_{op}",
        "summary": f"The request `{op}` of the adapter protocol.",
        "tags": ["protocol"],
        "parameters": [] if op == "hello" else [_session(required=True)],
        "requestBody": {"required": True, "content": _json(_bare(form))},
        "responses": {"200": {"description": "The answer.", "content": _json(_bare(told))}, **_ANYWHERE},
    }


def _bare(part: Any) -> Any:
    """A schema of a message without the members that HTTP says, and without its own name."""
    if isinstance(part, list):
        return [_bare(each) for each in part]
    if not isinstance(part, Mapping):
        return part
    found = {name: _bare(value) for name, value in part.items() if name not in ("$schema", "$id")}
    if isinstance(found.get("required"), list):
        found["required"] = [name for name in found["required"] if name not in _ELSEWHERE]
    if isinstance(found.get("properties"), Mapping):
        found["properties"] = {name: value for name, value in found["properties"].items() if name not in _ELSEWHERE}
    return found


def _placed(members: Mapping[str, Any], route: Route) -> Iterator[tuple[str, str, str]]:
    for name in members:
        if f"{{{name}}}" in route.path:
            yield name, "path", ""
        elif name in route.headers:
            yield name, "header", route.headers[name]


def _response(contract: Contract, method: Method, route: Route, status: int) -> dict[str, Any]:
    names = route.named(status)
    told = [contract.reasons[name].meaning if name in contract.reasons else name for name in names]
    found: dict[str, Any] = {"description": "; ".join(told)}
    if names[0] in (*method.effects, OK):
        if method.result is not None:
            found["content"] = _json(method.result.schema)
            links = dict(_links(contract, method.result.schema.get("properties", {}), method))
            found |= {"links": links} if links else {}
    elif names != (INDETERMINATE,):
        data = {} if method.refusal_data is None else dict(method.refusal_data.schema)
        if route.names_reason(status):
            members = {ERROR: {"enum": list(names)}, **data.get("properties", {})}
            data = {**data, "type": "object", "required": [ERROR], "properties": members}
        found["content"] = _json(data)
    return found


def _links(contract: Contract, told: Mapping[str, Any], asked: Method) -> Iterator[tuple[str, Any]]:
    """The methods that take what an answer tells under the same name: the ids of what was made."""
    for method in contract.methods.values():
        members = method.args.schema.get("properties", {})
        shared = {name: f"$response.body#/{name}" for name in members if name in told}
        route = route_of(contract, method)
        inside = route.body(shared)
        if inside and method is not asked and inside == shared and method.group is not Group.PROVOCATION:
            yield method.name, {"operationId": method.name, "requestBody": inside}


def _json(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": _moved({name: part for name, part in schema.items() if name != "$defs"})}}


def _moved(part: Any) -> Any:
    """A schema whose references lead to the components, without what is for tests alone."""
    if isinstance(part, Mapping):
        return {name: _moved(value) for name, value in part.items() if name != "x-leaf"}
    if isinstance(part, list | tuple):
        return [_moved(each) for each in part]
    if isinstance(part, str) and part.startswith(_DEFS):
        return _COMPONENTS + part.removeprefix(_DEFS)
    return part
