"""Secrets go, and what cases say to each other stays: the gate judges it again."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.reports.evidence import MARK, Event, Exchange, Redactor, VerdictLine
from holdfast.reports.evidence.redact import looks_secret
from holdfast.specs import strictjson, yamlfile
from holdfast.specs.typed import written
from tests.pace import busy

SPECS = Path(__file__).parents[2] / "specs"
TOY = Path(__file__).parents[1] / "toycontract"
PLAIN = Redactor()


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("postgresql://app:hunter2@db/prod", "hunter2"),
        ("cannot reach postgres://app:p@ss/w:rd@db:5432/prod?sslmode=require", "p@ss/w:rd"),
        ("postgresql+psycopg://:hunter2@/x", "hunter2"),
        ("https://me:hunter2@pypi.internal/simple", "hunter2"),
        ("host=db user=app password=hunter2 dbname=x", "hunter2"),
        (r"host=db password='hun ter\'2' dbname=x", "ter"),
        ("postgresql://db/x?user=app&password=hunter2", "hunter2"),
        ('config: {"api_key": "hunter2"}', "hunter2"),
        ("PGPASSWORD=hunter2 ./adapter", "hunter2"),
        ("Server=db;Uid=app;Pwd=hunter2;", "hunter2"),
        ("Authorization: Bearer abcdefgh.hunter2-xyz", "hunter2"),
        ("-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----", "hunter2"),
    ],
)
def test_what_looks_like_a_secret_goes_from_free_text(text: str, secret: str) -> None:
    redacted = PLAIN.free(text)
    assert secret not in redacted
    assert MARK in redacted
    assert PLAIN.free(redacted) == redacted


def test_everything_but_the_password_of_a_connection_string_stays() -> None:
    redacted = PLAIN.free("postgresql://app:hunter2@db:5432/prod?sslmode=require")
    assert redacted == f"postgresql://app:{MARK}@db:5432/prod?sslmode=require"


@pytest.mark.parametrize(
    "text",
    [
        "listening on http://127.0.0.1:8080/v1/send",
        "refused with REPLAY_NONCE_CONSUMED",
        "2026-01-01T00:00:00Z worker 3: committed decision d-17",
        "the authorization_nonce was consumed",
        "",
    ],
)
def test_ordinary_free_text_stays_as_it_is(text: str) -> None:
    assert PLAIN.free(text) == text


SECRET = (
    "password PGPASSWORD db_password secret api_key API-KEY GITHUB_TOKEN AWS_SECRET_ACCESS_KEY MYSQL_PWD "
    "signing_key_b64 credentials"
)
OTHERS = "PWD OLDPWD token_ttl_seconds key isolation authorization_nonce dsn"


def test_names_of_secrets_are_known_and_those_of_other_things_are_not_taken_for_them() -> None:
    assert [name for name in f"{SECRET} {OTHERS}".split() if looks_secret(name)] == SECRET.split()


def test_config_and_command_lose_their_secrets_and_keep_the_rest() -> None:
    config = {"dsn": "postgresql://app:hunter2@db/x", "api_key": "abc", "isolation": "serializable"}
    assert PLAIN.named(config) == {
        "dsn": f"postgresql://app:{MARK}@db/x",
        "api_key": MARK,
        "isolation": "serializable",
    }
    command = ["adapter", "--password", "hunter2", "--token=abc", "--verbose"]
    assert PLAIN.command(command) == ["adapter", "--password", MARK, f"--token={MARK}", "--verbose"]


def redacted_event(redactor: Redactor, event: Event) -> Event:
    line = redactor.line(Exchange("toy/once/one", "main", 0, "file", 0, None, None, event, 1, 2))
    assert isinstance(line, Exchange)
    assert line.event is not None
    return line.event


def redact_exchange(redactor: Redactor, request: Any, answer: Any) -> dict[str, Any]:
    line = Exchange("toy/once/one", "main", 0, "call", 0, request, answer, None, 1, 2)
    return written(redactor.line(line))


def test_a_secret_of_the_user_goes_from_wherever_it_comes_back() -> None:
    secret = "correct-horse-battery"
    redactor = Redactor.knowing(config={"dsn": f"postgresql://app:{secret}@db/x"})
    answer = {"outcome": "accepted", "effect": "new", "value": {"note": [f"used {secret}"]}, "detail": secret}
    request = {"op": "call", "method": "put", "args": {"copied": secret}}
    assert secret not in str(redact_exchange(redactor, request, answer))
    assert redactor.free(f"thread panicked: {secret}!") == f"thread panicked: {MARK}!"


def test_secrets_of_config_environment_and_command_are_known_and_a_percent_encoded_one_in_both_forms() -> None:
    redactor = Redactor.knowing(
        config={"dsn": "postgresql://app:p%40ssw0rd-long@db/x"},
        environment={"PGPASSWORD": "environmental"},
        command=("a", "--token", "commanded-1"),
    )
    text = "p@ssw0rd-long p%40ssw0rd-long environmental commanded-1"
    assert redactor.free(text) == " ".join([MARK] * 4)


def test_a_short_password_of_the_user_goes_from_a_session_config_and_stays_a_word_elsewhere() -> None:
    redactor = Redactor.knowing(config={"dsn": "postgresql://app:shelf@db/x", "db_password": "shelf"})
    request = {"op": "open", "config": {"dsn": "postgresql://app:shelf@db/x", "db_password": "shelf", "mode": "shelf"}}
    redacted = redact_exchange(redactor, request, {"outcome": "ok", "value": {"where": "shelf"}})
    config = redacted["request"]["config"]
    assert config == {"dsn": f"postgresql://app:{MARK}@db/x", "db_password": MARK, "mode": "shelf"}
    assert redacted["answer"]["value"] == {"where": "shelf"}


def test_a_connection_string_of_the_adapters_own_goes_from_its_answers() -> None:
    answer = {"outcome": "ok", "value": {"objects": ["postgresql://own:hunter2@db/x", "host=db password=hunter2"]}}
    assert "hunter2" not in str(redact_exchange(PLAIN, None, answer))


def test_what_a_case_makes_up_stays_in_its_requests() -> None:
    request = {
        "op": "open",
        "config": {"dsn": "postgresql://nobody:wrong@127.0.0.1:1/none", "token": "made-up", "token_ttl_seconds": "300"},
    }
    assert redact_exchange(Redactor.knowing(config={"dsn": "postgresql://a:elsewhere-1234@db/x"}), request, None)[
        "request"
    ] == (request)


def test_targets_and_member_names_of_a_contract_stay_in_answers() -> None:
    value = {
        "rows": [
            {"canonical_target": "dot://User:part@acme/x", "authorization_nonce": "n" * 22, "token": "t-1"},
            {"url": "https://me:pw@example.org/", "text": "password: none; api_key=demo"},
        ]
    }
    answer = {"outcome": "ok", "value": value}
    assert redact_exchange(PLAIN, None, answer)["answer"] == answer


def test_what_the_harness_saw_is_judged_like_an_answer() -> None:
    seen: dict[str, Any] = {
        "tables": {"t": {"columns": [{"name": "token", "type": "TEXT"}], "sql": "CREATE TABLE t (token: 'x')"}}
    }
    seen["rows"] = {"t": [{"token": "abcdef", "dsn": "postgres://me:hidden@host/db", "own": "users-own-secret"}]}
    detail = strictjson.canonical(seen).decode()
    redactor = Redactor(frozenset({"users-own-secret"}))
    found = redacted_event(redactor, Event("done", detail)).detail
    assert strictjson.loads(found)["tables"] == seen["tables"]
    assert strictjson.loads(found)["rows"]["t"] == [
        {"token": "abcdef", "dsn": "postgres://me:***@host/db", "own": "***"}
    ]
    assert strictjson.canonical(strictjson.loads(found)).decode() == found
    assert redacted_event(redactor, Event("failed", "token=abcdef")).detail == "token=***"


@pytest.mark.parametrize(
    ("content", "goes"),
    [
        (b"\x00\xffusers-own-secret\xfe", True),
        (b"dsn = postgres://me:hidden@host/db", True),
        (b"\x00\xff token=abcdef, password=x", False),
        (b"", False),
    ],
)
def test_bytes_of_a_file_stay_unless_a_secret_stands_in_them(content: bytes, goes: bool) -> None:
    text = base64.urlsafe_b64encode(content).rstrip(b"=").decode()
    detail = strictjson.canonical({"bytes": text, "size": len(content)}).decode()
    redactor = Redactor(frozenset({"users-own-secret"}))
    found = redacted_event(redactor, Event("done", detail))
    assert strictjson.loads(found.detail)["bytes"] == (MARK if goes else text)
    assert redacted_event(redactor, found) == found


def test_the_words_of_a_verdict_line_stay() -> None:
    line = VerdictLine(
        "toy/secret/a-token-is-kept", ("TOY-01",), "conforms", None, "password=hunter2", "", "", "",
        "https://issues/1", 0.1, None, None,
    )  # fmt: skip
    assert PLAIN.line(line) == replace(line, detail=f"password={MARK}")


def strings_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in strings_in(part)]
    if isinstance(value, list):
        return [text for part in value for text in strings_in(part)]
    return []


CASE_FILES = sorted([*SPECS.glob("*/cases/*.yaml"), *TOY.glob("*/cases/*.yaml")])


@pytest.mark.parametrize("path", CASE_FILES, ids=lambda path: f"{path.parent.parent.name}/{path.name}")
def test_no_text_of_any_case_is_altered_in_an_answer(path: Path) -> None:
    texts = strings_in(yamlfile.read_yaml(path))
    assert texts
    assert [PLAIN.judged(text) for text in texts] == texts


TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            ["postgres://", "u", ":", "@", "/", "password", "=", "'", "\\", " ", "***", "*", "secret", ";pwd=",
             "bearer ", "abcdefgh", "host=", "long-known-secret", "-----BEGIN PRIVATE KEY-----", "-----END"]
        ),
        max_size=14,
    ).map("".join),
)  # fmt: skip


@given(TEXTS)
def test_redaction_is_idempotent(text: str) -> None:
    redactor = Redactor(frozenset({"long-known-secret", "u:secret=***", "abcdefgh***"}))
    for step in (redactor.free, redactor.judged):
        once = step(text)
        assert step(once) == once


@given(st.text(max_size=80))
def test_free_text_can_always_be_written(text: str) -> None:
    strictjson.canonical(PLAIN.free(text + "\ud83d"))


@pytest.mark.parametrize(
    "unit",
    ["a", "://", "postgres://u:", "password=", "secret ", "-----BEGIN PRIVATE KEY-----", "'", "bearer ", "@", ";"],
)
def test_hostile_text_of_64_kib_is_redacted_in_reasonable_time(unit: str) -> None:
    text = (unit * 65536)[:65536]
    started = time.perf_counter()
    PLAIN.free(text)
    assert time.perf_counter() - started < busy(2.0)
