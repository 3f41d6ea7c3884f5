"""A runner is built from its locked sources and asked a few questions whose answers a person can check.

Builds take the network and the toolchains the first time; afterwards they are found in the cache. Where CI is set, a
toolchain that is missing fails; elsewhere its runners are skipped, with the reason.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from holdfast.vectors.jcs import sdk
from holdfast.vectors.jcs.frames import Status, run
from holdfast.vectors.jcs.sdk.manifest import manifests

C, R, CRASHED = Status.CANONICAL, Status.REFUSED, Status.CRASHED
REFERENCES = [name for name in sdk.names() if name.startswith("reference")]
RUNNERS = [name for name in sdk.names() if name not in REFERENCES]
# Compilers take minutes in a fresh clone. By default one language of them is built, by the digest of the manifests:
# another after each change of any of them; `-m sweep` and `tox -e sweep` build all.
COMPILED = sorted({name.partition("-")[0] for name in RUNNERS} - {"python", "node"})
_MANIFESTS = b"".join((each.folder / "runner.toml").read_bytes() for each in manifests())
CHOSEN = COMPILED[int.from_bytes(sha256(_MANIFESTS).digest()[:4]) % len(COMPILED)]
# A JVM that prints the trace of an exhausted stack, on a machine that does other things too.
DEADLINE = 30.0
DEEP = b"[" * 100_000 + b"]" * 100_000

# The difference between each pipeline and RFC 8785, one example a kind. The bytes are the pipeline's own.
LAST_WINS = (b'{"a":1,"a":2}', C, b'{"a":2}')
REPLACED = (b'["\xff"]', C, '["\ufffd"]'.encode())
LONE_ESCAPED = (rb'["\ud800"]', C, rb'["\ud800"]')
UTF_16 = ("[]".encode("utf-16-le"), C, b"[]")
CODE_POINTS = ('{"\U00010000":2,"\ue000":1}'.encode(), C, '{"\ue000":1,"\U00010000":2}'.encode())
EXPONENT = (b"[1e20,1e-7]", C, b"[1e+20,1e-07]")
STACK = (DEEP, CRASHED, b"")
LIMIT = (DEEP, R, b"")
DEPARTURES: dict[str, list[tuple[bytes, Status, bytes]]] = {
    "python-rfc8785": [LAST_WINS, UTF_16, (b"[9007199254740992]", R, b""), STACK],
    "python-jcs": [LAST_WINS, UTF_16, STACK],
    "python-naive": [LAST_WINS, LONE_ESCAPED, EXPONENT, (b"[NaN,1e999]", C, b"[NaN,Infinity]"), STACK],
    "node-canonicalize": [LAST_WINS, REPLACED, STACK],
    "node-json-canonicalize": [
        LAST_WINS,
        REPLACED,
        LONE_ESCAPED,
        (b'{"toJSON":1,"constructor":2}', C, b'{"toJSON":1,"constructor":2}'),
        STACK,
    ],
    "node-naive": [
        LAST_WINS,
        LONE_ESCAPED,
        (b'{"10":1,"9":2}', C, b'{"9":2,"10":1}'),
        (b'{"__proto__":1,"a":2}', C, b'{"a":2}'),
        (b"[1e400]", C, b"[null]"),
    ],
    "go-gowebpki": [LIMIT],
    "go-naive": [LAST_WINS, REPLACED, CODE_POINTS, (b'["<"]', C, rb'["\u003c"]'), (b"[-0]", C, b"[-0]"), LIMIT],
    "rust-serde-json-canonicalizer": [LAST_WINS, LIMIT],
    "rust-serde-jcs": [LAST_WINS, LIMIT],
    "java-erdtman": [
        (b'{"a":null,"a":1}', C, b'{"a":1}'),
        (rb'["\ud800"]', C, b'["?"]'),
        REPLACED,
        (b"[01]", C, b"[1]"),
        (b"null", R, b""),
        STACK,
    ],
    "cpp-nlohmann": [
        LAST_WINS,
        CODE_POINTS,
        (b"[1e20,1.0]", C, b"[1e+20,1.0]"),
        (b"\xef\xbb\xbf[]", C, b"[]"),
        (b"[]\0", C, b"[]"),
        STACK,
    ],
}


def _param(name: str) -> object:
    language = name.partition("-")[0]
    is_left_out = language in COMPILED and language != CHOSEN
    return pytest.param(name, marks=pytest.mark.sweep if is_left_out else ())


@pytest.fixture(params=[_param(name) for name in RUNNERS])
def runner(request: pytest.FixtureRequest) -> sdk.Sdk:
    """Each runner, built."""
    name: str = request.param
    found = sdk.find(name)
    if found.missing and " is missing: " in found.missing and not os.environ.get("CI"):
        pytest.skip(found.missing)
    return sdk.build(name)


def ask(runner: sdk.Sdk, *documents: bytes) -> list[tuple[Status, bytes]]:
    answers = run(runner.command, documents, deadline=DEADLINE)
    # The words of a refusal and of a crash are the runner's own.
    return [(answer.status, answer.body if answer.status is C else b"") for answer in answers]


def test_a_runner_sorts_members_and_drops_whitespace(runner: sdk.Sdk) -> None:
    document = b' { "b" : [ 1 , 2 ] , "a" : "x\\n\\u0041" , "c" : { } , "B" : null } '
    assert ask(runner, document) == [(C, b'{"B":null,"a":"x\\nA","b":[1,2],"c":{}}')]


def test_a_runner_refuses_what_is_no_json_and_goes_on(runner: sdk.Sdk) -> None:
    documents = [b"", b"[1,]", b"{a:1}", b'["\\x"]', b"[1.]", b"[1]", b"[1"]
    assert ask(runner, *documents) == [*[(R, b"")] * 5, (C, b"[1]"), (R, b"")]


def test_a_runner_departs_where_its_pipeline_is_known_to_depart(runner: sdk.Sdk) -> None:
    expected = DEPARTURES[runner.name]
    assert ask(runner, *[document for document, _, _ in expected]) == [(status, body) for _, status, body in expected]


def test_a_runner_keeps_up_with_many_documents_and_with_large_ones(runner: sdk.Sdk) -> None:
    documents = [b'{"a":%d}' % number for number in range(3000)]
    documents[1500] = b'["' + b"x" * 300_000 + b'"]'
    assert ask(runner, *documents) == [(C, document) for document in documents]


@pytest.mark.parametrize("name", REFERENCES)
def test_the_reference_is_a_runner_too(name: str) -> None:
    found = sdk.find(name)
    assert sdk.build(name) == found
    assert ask(found, b'{"b":1,"a":1e2}', b'{"a":1,"a":2}', DEEP)[:2] == [(C, b'{"a":100,"b":1}'), (R, b"")]


def test_becoming_a_runner_gives_frames_on_standard_output() -> None:
    sdk.build("python-naive")
    program = "from holdfast.vectors.jcs import sdk; sdk.exec_runner('python-naive')"
    answers = run([sys.executable, "-c", program], [b"[1.0]", b"["], deadline=DEADLINE, env=dict(os.environ))
    assert [answer.status for answer in answers] == [C, R]


def test_versions_stand_in_the_locks() -> None:
    for manifest in manifests():
        locks = "\n".join(
            path.read_text(encoding="utf-8")
            for path in sorted(manifest.folder.iterdir())
            if path.is_file() and not path.name.startswith("runner.") and path.suffix != ".pyc"
        )
        for entry in manifest.runners:
            if re.match(r"\d", entry.version):
                name = entry.library.rpartition(":")[2]
                # One after the other, with only what the format puts in between.
                assert re.search(rf"(?s){re.escape(name)}.{{0,40}}?{re.escape(entry.version)}", locks), entry


def test_sources_are_not_touched_by_builds_and_not_hidden_from_the_package() -> None:
    folder = Path(sdk.__file__).parent
    stray = {"node_modules", "target", "classes", "lib", "bin", "runner"}
    assert [path for path in folder.rglob("*") if path.name in stray] == []
    files = [str(path) for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    hidden = subprocess.run(
        ["git", "check-ignore", "--stdin"], input="\n".join(files), text=True, cwd=folder, stdout=-1
    )
    # 1: none of them is ignored; 128: not a repository, as in an unpacked archive.
    assert hidden.returncode in {1, 128}, hidden.stdout
