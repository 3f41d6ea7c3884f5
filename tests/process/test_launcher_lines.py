"""The line that a launcher answers is read as the published schema has it."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest

from holdfast.servers.serving import Ready, decode, encode
from holdfast.specs import schema

LINES = {
    "config-alone": {"config": {}},
    "all": {"config": {"a": "b"}, "processes": [2], "paths": ["/x"], "surface": {"dsn": "d"}},
    "no-config": {"paths": []},
    "number-in-config": {"config": {"a": 1}},
    "process-one": {"config": {}, "processes": [1]},
    "process-text": {"config": {}, "processes": ["2"]},
    "process-true": {"config": {}, "processes": [True]},
    "relative-path": {"config": {}, "paths": ["x"]},
    "surface-null": {"config": {}, "surface": None},
    "unknown-member": {"config": {}, "folders": []},
    "list": [],
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_is_read_if_and_only_if_it_fits_the_published_schema(name: str) -> None:
    fits = schema.explain(schema.published_validator("launcher"), LINES[name]) is None
    with nullcontext() if fits else pytest.raises(ValueError, match=r"."):
        decode(json.dumps(LINES[name]).encode(), Ready)


def test_a_line_that_is_written_fits_the_published_schema() -> None:
    for ready in (Ready({}), Ready({"a": "b"}, (2,), ("/x",), {"dsn": "d"})):
        assert schema.explain(schema.published_validator("launcher"), json.loads(encode(ready))) is None
        assert decode(encode(ready), Ready) == ready


@pytest.mark.parametrize(
    "line",
    [
        b'{"config":{},"config":{}}',
        b'{"config":{"a":"b","a":"c"}}',
        b'{"config":{"a":"\\ud800"}}',
        b'{"config":{}',
        b"",
    ],
    ids=["twice", "twice-inside", "surrogate", "half", "empty"],
)
def test_a_line_that_is_no_strict_json_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(line, Ready)
