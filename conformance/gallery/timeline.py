"""What a test of a service did, as a person tells it: client, sink, store and processes, in order."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from holdfast.conformance.cases.record import Record
from holdfast.conformance.cases.values import from_base64url
from holdfast.servers.wires.profile import FIRST, ProfileError, whole

_TEXT = 100
_ALWAYS = {"line": "store", "serve_store": "store", "instance": "process", "pass_time": "clock", "pause": "wait"}
_OF_A_TAG = {"hold", "release", "ending", "seen"}
_SENT = {"submit", "begin"}
# What a request may have that a plain one has not, beside headers.
_APART = {"principal": "principal {}", "content_type": "Content-Type: {}", "chunked": "in chunks"}


def _befell(record: Record) -> str:
    """What holdfast itself did to the files of the store; empty where it did nothing, or asked only."""
    act, _, what = record.action.partition(" ")
    if act not in {"tamper", "lock", "copy", "lose-power"} or (record.event or {}).get("kind") != "done":
        return ""
    found = json.loads((record.event or {}).get("detail") or "{}")
    return {
        "tamper": f"holdfast changes the files: {what}{'' if what.endswith(' cut') else ' removed'}",
        "lock": f"holdfast locks {found['count']} files" if found.get("count") else "holdfast lets go of the locks",
        "copy": f"holdfast moves {what} to {found.get('to')}",
        "lose-power": f"the power is lost (state {int(what) + 1} of {found['states']})" if found.get("kept") else "",
    }[act]


def _asked(record: Record) -> tuple[str, Mapping[str, Any]]:
    request = record.request or {}
    if befell := _befell(record):
        return "serve_store", {"do": befell}
    return (request["method"], request.get("args", {})) if request.get("op") == "call" else ("", {})


def profile_of(records: Sequence[Record]) -> Mapping[str, Any] | None:
    """What the service said of itself; None where no service was asked."""
    for record in records:
        if _asked(record)[0] == "profile" and record.answer is not None:
            with suppress(ProfileError):
                return whole(record.answer.get("value") or {})
    return None


def _tag(method: str, args: Mapping[str, Any], names: Mapping[str, str]) -> str | None:
    if method in ("finish", "cut"):
        return names.get(args["name"])
    if method == "burst":
        return str(args["requests"][0]["tag"])
    found: str | None = args.get("request", args).get("tag")
    return found


def timeline(records: Sequence[Record], n: int | None) -> list[str]:
    """The lines of the tag that exchange `n` is about, up to it, and of all that was done to store and processes."""
    profile = profile_of(records)
    if profile is None:
        return []
    names: dict[str, str] = {}
    told: list[tuple[Record, str, Mapping[str, Any], str | None]] = []
    for record in records:
        method, args = _asked(record)
        if method == "begin":
            names[args["name"]] = args["request"]["tag"]
        if method:
            told.append((record, method, args, _tag(method, args, names)))
    wanted = next((tag for record, _, _, tag in reversed(told) if tag and (n is None or record.n <= n)), None)
    shown = [
        (record, method, args)
        for record, method, args, tag in told
        if (n is None or record.n <= n) and (method in _ALWAYS or (tag is not None and tag == wanted))
    ]
    began = next((record.sent_us for record, _, _ in shown if record.sent_us is not None), 0) or 0
    heard: set[Any] = set()
    return [line for each in shown for line in _lines(*each, began, profile, heard)]


def _lines(
    record: Record, method: str, args: Mapping[str, Any], began: int, profile: Mapping[str, Any], heard: set[Any]
) -> Iterator[str]:
    at = ((record.sent_us or began) - began) / 1e6
    answer = record.answer or {}
    value = answer.get("value") or {}
    if method in _SENT:
        found = {**(answer.get("data") or value), **answer}
        came = _outcome(found, profile, heard, method) if method == "submit" else f"is at: {value.get('at')}"
        wire, text = "client", f"{_request(args.get('request', args), profile)}  ->  {came}"
    elif method == "burst":
        counted = [_outcome(each, profile, heard, method) for each in value.get("answers", ())]
        wire, text = "client", f"{len(args['requests'])} at once  ->  {', '.join(counted)}"
    elif method in ("finish", "cut"):
        came = _outcome(value, profile, heard, method) if method == "finish" else "goes away"
        wire, text = "client", f"{args['name']}  ->  {came}"
    elif method == "seen":
        wire, text = "sink", f"has seen {value.get('effects')} effects of {value.get('attempts')} attempts"
    elif method in _OF_A_TAG:
        wire = "sink"
        text = {"hold": f"holds the next {args.get('count')}, {args.get('when')} its effect", "release": "lets go"}.get(
            method, f"tells the handler: {_ending(args)}"
        )
    else:
        wire = _ALWAYS[method]
        text = " ".join(str(part) for part in args.values())
        if "ms" in args:
            text = f"{args['ms'] / 1000:+g} s" if method == "pass_time" else f"{args['ms'] / 1000:g} s"
        if fails := re.search(r"--error (\d+) .*--at (\d+)", text):
            text = f"start {args['number']}, call {fails[2]} to its files fails: {os.strerror(int(fails[1]))}"
    yield f"{at:8.3f} s  {wire:<7}  {text}"


def _filled(request: Mapping[str, Any]) -> str:
    notes = [f"each %FILL% stands for {request['fill']} letters x"] if request.get("fill") else []
    notes += ["half of the body was sent, and the client went away"] if request.get("half") else []
    return f"  # {'; '.join(notes)}" if notes else ""


def _request(request: Mapping[str, Any], profile: Mapping[str, Any]) -> str:
    route = profile["routes"].get(request.get("route", "create"), {})
    keys = ", ".join(repr(key) for key in request["keys"]) or "none"
    query = f"?{request['query']}" if request.get("query") else ""
    body = from_base64url(request["body"])
    shown = _shown(body[:_TEXT]) + ("…" if len(body) > _TEXT else "")
    method, path = request.get("method") or route.get("method", "POST"), route.get("path", "?")
    apart = [words.format(request[name]) for name, words in _APART.items() if request.get(name)]
    more = "".join(
        f", {each}" for each in [*apart, *(f"{name}: {value}" for name, value in request.get("headers", ()))]
    )
    where = f"to instance {request.get('instance', 0)}"
    return f"{method} {path}{query} {where}, key {keys}{more}, {shown}{_filled(request)}"


def _outcome(found: Mapping[str, Any], profile: Mapping[str, Any], heard: set[Any], method: str) -> str:
    if found.get("outcome") not in ("accepted", "refused"):
        return str(found.get("detail") or found.get("outcome") or "no answer")
    # Of requests at once the sink cannot say whose handler it saw: the first answer with its bytes is the handler's.
    came, is_new = (found.get("status"), found.get("body")), found.get("effect") == "new"
    is_known = (came in heard or found.get("marked")) and not (is_new and method == "submit")
    what = "an answer from before" if is_known else "its own answer" if is_new or method == "burst" else "an answer"
    if found.get("outcome") == "accepted":
        heard.add(came)
    if profile["profile"]["handler"] == "behind":
        # The handler runs behind the answer, so the answer is of no execution.
        what = "an answer"
    if found.get("marked"):
        what = f"{what}, marked as a replay,"
    if found.get("outcome") != "accepted":
        what = str(found.get("reason"))
    body = _shown(from_base64url(found["body"])[:_TEXT]) if found.get("body") else ""
    return f"{found.get('status')} {what} {body}".rstrip()


def _shown(data: bytes) -> str:
    """A text without what a terminal would obey."""
    text = data.decode("utf-8", "replace")
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _ending(args: Mapping[str, Any]) -> str:
    ending = args.get("ending", {})
    told = [f"{name} {value}" for name, value in ending.items() if name != "body"]
    if "body" in ending:
        told.append(f"a body of {len(from_base64url(ending['body']))} bytes")
    return ", ".join(told) or "as before"


def curls(
    records: Sequence[Record], n: int | None, credentials: Mapping[str, Mapping[str, str]] = MappingProxyType({})
) -> list[str]:
    """The requests of the same tag as lines of curl, with the headers of their principals.

    A value that begins with `$` is a variable of the shell.
    """
    profile = profile_of(records)
    if profile is None:
        return []
    asked = [(record, *_asked(record)) for record in records if n is None or record.n <= n]
    sent = [args.get("request", args) for _, method, args in asked if method in _SENT]
    return [_curl(each, profile, credentials) for each in sent if each["tag"] == sent[-1]["tag"]]


def _curl(request: Mapping[str, Any], profile: Mapping[str, Any], credentials: Mapping[str, Mapping[str, str]]) -> str:
    route = profile["routes"].get(request.get("route", "create"), {})
    words = ["curl", "-i", "-X", request.get("method") or route.get("method", "POST")]
    for key in request["keys"]:
        words += ["-H", f"{profile['profile']['header']}: {key}"]
    words += ["-H", f"Content-Type: {request.get('content_type', 'application/json')}"]
    framed = [("Transfer-Encoding", "chunked")] if request.get("chunked") else []
    for name, value in (*request.get("headers", ()), *framed):
        words += ["-H", f"{name}: {value}"]
    body = from_base64url(request["body"])
    words += ["--data-binary", _shown(body[: 4 * _TEXT])]
    query = f"?{request['query']}" if request.get("query") else ""
    line = shlex.join(words)
    for name, value in credentials.get(request.get("principal", FIRST), {}).items():
        line += f' -H "{name}: {value}"' if value.startswith("$") else f" -H {shlex.quote(f'{name}: {value}')}"
    return f'{line} "$SERVICE{route.get("path", "")}{query}"{_filled(request)}'
