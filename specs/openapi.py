"""The OpenAPI document of a contract, made from the routes of its operations. The same for every contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.specs.model import Contract, Method
from holdfast.specs.routes import ERROR, INDETERMINATE, Route

_VERSION = "3.1.0"
_DEFS, _COMPONENTS = "#/$defs/", "#/components/schemas/"


def openapi_of(contract: Contract) -> dict[str, Any] | None:
    """The document; None for a contract without routes."""
    routed = [method for method in contract.methods.values() if method.route is not None]
    if not routed:
        return None
    paths: dict[str, Any] = {}
    for method in routed:
        route = method.route
        assert route is not None
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(contract, method, route)
    shared = routed[0].args.schema.get("$defs", {})
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
        "parameters": parameters,
        "requestBody": {"required": True, "content": _json(body)},
        "responses": {
            str(status): _response(contract, method, route, status) for status in sorted({*route.statuses.values()})
        },
    }


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
    if names[0] in method.effects and method.result is not None:
        found["content"] = _json(method.result.schema)
    elif names != (INDETERMINATE,):
        data = {} if method.refusal_data is None else dict(method.refusal_data.schema)
        if len(names) > 1:
            members = {ERROR: {"enum": list(names)}, **data.get("properties", {})}
            data = {**data, "type": "object", "required": [ERROR], "properties": members}
        found["content"] = _json(data)
    return found


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
