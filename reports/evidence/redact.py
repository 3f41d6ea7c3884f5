"""Keeping secrets out of evidence without changing what cases say to each other.

Two measures, because two kinds of text are written. *Free* text (standard error, details, command lines, the
environment) is never judged, so anything that resembles a secret goes. *Judged* content is judged again by the
gate. A request follows from the case and the seed, which are public, so only what is known to be the user's secret
goes. From an answer's value, data and reason go passwords inside database connection strings too. A contract's own
targets (`dot://user:part@acme/x`), field names (`authorization_nonce`, `token: …`) and connection strings that a case
makes up stay as they are.

Both are idempotent: what is redacted is redacted to itself.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import unquote

from msgspec.structs import replace

from holdfast.reports.evidence.model import (
    Attempt,
    Counterexample,
    Event,
    Exchange,
    Header,
    Implementation,
    Line,
    Log,
    Restart,
    SurfaceLine,
    Vectors,
    VerdictLine,
)
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import canonical, loads

# What stands in the place of a secret.
MARK = "***"
# A known secret shorter than this may be a syllable of ordinary text; inside connection strings it goes all the same.
_MIN_FREE = 6
# In judged content a known secret shorter than this could be a word of a contract.
_MIN_JUDGED = 12
# No password is longer; bounds the search in hostile text.
_LONGEST = 1024
# Ordinary text is stable after two rounds; the bound is for text made to go round for ever.
_ROUNDS = 16

_HIDDEN_WORD = (
    r"(?:password|passwd|passphrase|secret|token|credentials?"
    r"|(?:api|access|secret|private|signing|encryption|account)[_-]?key|_pwd)"
)
_HIDDEN_NAME = re.compile(rf"(?:{_HIDDEN_WORD}(?:[_-](?:b64|base64|hex))?)\Z", re.IGNORECASE)
_HIDDEN_FLAG = re.compile(rf"--?[a-z0-9_-]*{_HIDDEN_WORD}\Z", re.IGNORECASE)

_DATABASE = (
    r"(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|valkeys?|amqps?|mssql|sqlserver|oracle|cockroachdb|clickhouse"
    r"|cassandra|nats|kafka)(?:\+[a-z0-9_]+)?"
)
# Greedy up to the last @, because people leave @ and / in passwords unescaped.
_DATABASE_URL = re.compile(rf"({_DATABASE}://[^\s/:@\"'<>]*:)([^\s\"'<>]{{1,{_LONGEST}}})(?=@)", re.IGNORECASE)
_ANY_URL = re.compile(rf"(://[^\s/:@\"'<>]*:)([^\s/\"'<>]{{1,{_LONGEST}}})(?=@)")
_VALUE = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\s&;,'\"}\])]+)"
# libpq's key=value form: known by a second keyword, so that a case's own text is not taken for one.
_LIBPQ_KEYWORD = re.compile(r"\b(?:host|hostaddr|dbname|user|port|service)\s*=")
_LIBPQ_PASSWORD = re.compile(rf"(\b(?:ssl)?password\s*=\s*)({_VALUE})")
_ASSIGNMENT = re.compile(rf"((?:{_HIDDEN_WORD}|;\s*pwd)[\"']?\s*[=:]\s*)({_VALUE})", re.IGNORECASE)
_AUTHORIZATION = re.compile(r"(\b(?:bearer|basic)\s+)([A-Za-z0-9._~+/=-]{8,})", re.IGNORECASE)
_PRIVATE_KEY = re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)(?:(?!-----).)*(?=-----END|\Z)", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")

# The members of a line that are free text.
_FREE: Mapping[type[Line], Sequence[str]] = {
    Log: ("text",),
    Restart: ("cause",),
    Attempt: ("detail",),
    VerdictLine: ("detail", "expected", "received", "advice"),
    SurfaceLine: ("problem",),
}


def looks_secret(name: str) -> bool:
    """Whether a config key or an environment variable of this name holds a secret."""
    return _HIDDEN_NAME.search(name) is not None


def _judged_patterns(text: str) -> str:
    if "://" in text:
        text = _DATABASE_URL.sub(rf"\1{MARK}", text)
    if "assword" in text and _LIBPQ_KEYWORD.search(text):
        text = _LIBPQ_PASSWORD.sub(rf"\1{MARK}", text)
    return text


def _free_patterns(text: str) -> str:
    text = _DATABASE_URL.sub(rf"\1{MARK}", text)
    text = _ANY_URL.sub(rf"\1{MARK}", text)
    text = _ASSIGNMENT.sub(rf"\1{MARK}", text)
    text = _AUTHORIZATION.sub(rf"\1{MARK}", text)
    return _PRIVATE_KEY.sub(rf"\1{MARK}", text)


def _passwords_in(text: str) -> Iterable[str]:
    for pattern in (_DATABASE_URL, _ANY_URL):
        for found in pattern.finditer(text):
            yield found[2]
            yield unquote(found[2])
    for found in _ASSIGNMENT.finditer(text):
        yield _unquoted(found[2])


def _unquoted(value: str) -> str:
    """A libpq value without its quotes and escapes."""
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value[0] in "'\"" else value


def _any_of(secrets: Iterable[str], shortest: int) -> re.Pattern[str] | None:
    # The longest first: a secret that begins with another one must go as a whole.
    usable = sorted({s for s in secrets if len(s) >= shortest and s != MARK}, key=lambda s: (-len(s), s))
    return re.compile("|".join(map(re.escape, usable))) if usable else None


def _until_stable(step: Callable[[str], str], text: str) -> str:
    """Removing one secret can join two halves of another, so search again until the text stays the same."""
    for _ in range(_ROUNDS):
        after = step(text)
        if after == text:
            break
        text = after
    return text


@dataclass(frozen=True, slots=True)
class Redactor:
    """Redacts the lines of one run. `secrets` are values known to be secret; make it with `knowing`."""

    secrets: frozenset[str] = frozenset()
    _free: re.Pattern[str] | None = field(init=False, repr=False, compare=False)
    _judged: re.Pattern[str] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the search for the known secrets once."""
        object.__setattr__(self, "_free", _any_of(self.secrets, _MIN_FREE))
        object.__setattr__(self, "_judged", _any_of(self.secrets, _MIN_JUDGED))

    @classmethod
    def knowing(
        cls,
        *,
        config: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        command: Sequence[str] = (),
    ) -> Redactor:
        """A redactor that knows the secrets of the adapter's config, environment variables and command.

        `config` should hold the launcher's as well; `environment` is what is passed on to the adapter.
        """
        found: set[str] = set()
        for mapping in (config or {}, environment or {}):
            for name, value in mapping.items():
                if looks_secret(name):
                    found.add(value)
                found.update(_passwords_in(value))
        for before, word in zip(("", *command), command, strict=False):
            if _HIDDEN_FLAG.match(before):
                found.add(word)
            found.update(_passwords_in(word))
        return cls(frozenset(found))

    def free(self, text: str) -> str:
        """Text that is never judged: everything that resembles a secret goes, lone surrogates become U+FFFD."""
        return _until_stable(self._free_step, _SURROGATE.sub("\ufffd", text))

    def judged(self, text: str) -> str:
        """Text of an answer: only known secrets and passwords of database connection strings go."""
        # Nearly every string of a run takes this way out.
        if self._judged is None and "://" not in text and "assword" not in text:
            return text
        return _until_stable(self._judged_step, text)

    def _free_step(self, text: str) -> str:
        return _free_patterns(text if self._free is None else self._free.sub(MARK, text))

    def _judged_step(self, text: str) -> str:
        return _judged_patterns(text if self._judged is None else self._judged.sub(MARK, text))

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Config or environment: the values of names that suggest a secret go whole, the others are free text."""
        return {
            name: MARK if looks_secret(name) else self.free(value) if isinstance(value, str) else value
            for name, value in values.items()
        }

    def command(self, words: Sequence[str]) -> list[str]:
        """An argument list: also what follows a flag like `--password` goes."""
        return [
            MARK if _HIDDEN_FLAG.match(before) else self.free(word)
            for before, word in zip(("", *words), words, strict=False)
        ]

    def line(self, line: Line) -> Line:
        """One line of evidence with every string redacted as its place demands."""
        match line:
            case Exchange():
                return replace(
                    line,
                    request=self._request(line.request),
                    answer=self._answer(line.answer),
                    event=self._event(line.event),
                )
            case Header():
                return self._header(line)
            case Vectors():
                return replace(line, counterexamples=tuple(map(self._counterexample, line.counterexamples)))
            case _:
                return replace(line, **{name: self.free(getattr(line, name)) for name in _FREE.get(type(line), ())})

    def _header(self, line: Header) -> Header:
        said = line.adapter.implementation
        if said is not None:
            said = Implementation(self.free(said.name), self.free(said.version), self.free(said.language))
        return replace(
            line,
            adapter=replace(line.adapter, command=tuple(self.command(line.adapter.command)), implementation=said),
            environment=self.named(line.environment),
            config=self.named(line.config),
        )

    def _counterexample(self, found: Counterexample) -> Counterexample:
        """A runner's last message may hold anything; documents and answers are hexadecimal."""
        expected, answered = (
            replace(answer, detail=self.free(answer.detail)) for answer in (found.expected, found.answered)
        )
        return replace(found, expected=expected, answered=answered, reproduce=self.free(found.reproduce))

    def _request(self, request: Mapping[str, Any] | None) -> Any:
        if request is None:
            return None
        config = request.get("config")
        if isinstance(config, Mapping):
            request = {**request, "config": {name: self._own(name, value) for name, value in config.items()}}
        return self._each(request, self._known) if self._judged is not None else request

    def _own(self, name: str, value: Any) -> Any:
        """A value of a session's config: however short, a secret of the user's goes from where secrets stand."""
        if not isinstance(value, str) or not self.secrets:
            return value
        if looks_secret(name) and value in self.secrets:
            return MARK
        for pattern in (_DATABASE_URL, _LIBPQ_PASSWORD):
            value = pattern.sub(self._known_password, value)
        return value

    def _known_password(self, found: re.Match[str]) -> str:
        known = any(form in self.secrets for form in (found[2], unquote(found[2]), _unquoted(found[2])))
        return found[1] + MARK if known else found[0]

    def _known(self, text: str) -> str:
        return text if self._judged is None else _until_stable(partial(self._judged.sub, MARK), text)

    def _event(self, event: Event | None) -> Event | None:
        """What the harness inspected stands in the detail as JSON; it is judged like an answer."""
        if event is None:
            return None
        value = None
        if event.kind == "done":
            with suppress(StrictJsonError):
                value = loads(event.detail)
        if not isinstance(value, dict):
            return Event(self.free(event.kind), self.free(event.detail))
        kept = self._narrowly(value)
        if isinstance(kept.get("bytes"), str):
            kept["bytes"] = self._encoded(kept["bytes"])
        return replace(event, detail=canonical(kept).decode("utf-8"))

    def _encoded(self, text: str) -> str:
        """The bytes of a file as base64url: a secret in them takes them all away, for nothing less would hide it."""
        try:
            content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("utf-8", "replace")
        except ValueError:
            return text
        return text if self.judged(content) == content else MARK

    def _answer(self, answer: Mapping[str, Any] | None) -> Any:
        if answer is None:
            return None
        kept = self._narrowly(answer)
        if isinstance(answer.get("detail"), str):
            kept["detail"] = self.free(answer["detail"])
        return kept

    def _narrowly(self, value: Any) -> Any:
        return self._each(value, self.judged)

    def _each(self, value: Any, step: Callable[[str], str]) -> Any:
        if isinstance(value, str):
            return step(value)
        if isinstance(value, Mapping):
            return {name: self._each(part, step) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self._each(part, step) for part in value]
        return value
