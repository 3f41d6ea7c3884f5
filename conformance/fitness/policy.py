"""What the user declares about a surface beforehand. Nothing here makes a criterion proven.

A policy maps the contract's names to this database, and gives probes what they cannot guess. It is part of what a
proof is bound to. Each departure from the contract is reported wherever the proof is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import convert, field, structs

from holdfast.specs import Contract, SpecError, load_terms, schema
from holdfast.specs.fitness import surface_contract
from holdfast.specs.typed import Form, Text, json_of
from holdfast.specs.yamlfile import read_yaml

CONTRACT = surface_contract()
# The relation of the contract that holds the effect, and the parameter that says how long a consumed record blocks.
_EFFECT = "registration"
_HORIZON = "horizon_seconds"
# What an effect row binds (source section 6c), in the contract's order.
BINDINGS = ("operation", "canonical_target", "run_id", "deployed_artifact_hash", "owner_or_approval_binding")
KEYS = ("logical_request_key", "replay_key")
NONCE = "authorization_nonce"
# Words that are not the name of their column, with the column that they mean unless a policy maps them.
_ROLES = {"decision": "decision_id", "attempt": "attempt_id", "retain_until": "retain_until"}
WORDS = (*KEYS, NONCE, *BINDINGS, *_ROLES)
# A week, like a run's: roles, triggers and settings are other ones by then.
DEFAULT_MAX_AGE = timedelta(days=7)


class PolicyError(Exception):
    """A policy file is missing, malformed or contradicts itself: the text says where and what to do."""


@cache
def _terms() -> Contract:
    return load_terms(CONTRACT)


def contract_operations() -> tuple[str, ...]:
    """The operations that the contract's effect may hold."""
    return tuple(str(value) for value in _terms().relations[_EFFECT].columns["operation"].only)


def contract_horizon() -> int | None:
    """How many seconds the contract wants a consumed record to block; None is for ever."""
    value = _terms().parameters[_HORIZON].value
    return None if value is None else int(value)


class Policy(Form, frozen=True):
    """As fitness-policy.schema.json has it; in a proof with every member written out."""

    # None for schema.table of the effect.
    name: str | None = None
    columns: Mapping[str, Text] = field(default_factory=dict)
    operations: tuple[str, ...] = field(default_factory=contract_operations)
    horizon_seconds: int | None = field(default_factory=contract_horizon)
    max_age_seconds: int = int(DEFAULT_MAX_AGE.total_seconds())
    reviewed: tuple[str, ...] = ()
    # Sample values by "column" or "table.column".
    values: Mapping[str, Any] = field(default_factory=dict)
    domain_evidence: str | None = None
    sqlite_writer_uid: int | None = None
    # What the operator declares of the registrar's connections, by the name of the pragma.
    sqlite_connection: Mapping[str, str] = field(default_factory=dict)

    @property
    def horizon(self) -> timedelta | None:
        """How long a consumed record blocks; None is for ever."""
        return None if self.horizon_seconds is None else timedelta(seconds=self.horizon_seconds)

    @property
    def max_age(self) -> timedelta:
        """For how long a proof stands."""
        return timedelta(seconds=self.max_age_seconds)

    def column(self, word: str) -> str:
        """The column that a word of the contract means here. Raises KeyError for what is no such word."""
        if word not in WORDS:
            raise KeyError(word)
        return self.columns.get(word, _ROLES.get(word, word))

    def renames(self, word: str) -> bool:
        """Whether the column of a word is called otherwise than the contract has it."""
        return self.column(word) != _ROLES.get(word, word)

    def written(self) -> Policy:
        """As it stands in a proof and in its digest: every column named, in one spelling."""
        columns = {word: self.column(word) for word in WORDS}
        return structs.replace(self, columns=columns, reviewed=tuple(sorted(self.reviewed)))

    def departures(self) -> tuple[str, ...]:
        """Each way in which this inspects a surface otherwise than the contract does, in one sentence."""
        return tuple(self._departures())

    def less_than_contract(self) -> tuple[str, ...]:
        """Those departures by which FIT is less than the contract asks for, even where a person vouches for them."""
        return (*self._other_operations(), *self._lowered())

    def _other_operations(self) -> Iterator[str]:
        known = contract_operations()
        if others := [each for each in self.operations if each not in known]:
            yield f"the policy admits the operations {', '.join(others)}; the contract knows {', '.join(known)}"

    def _lowered(self) -> Iterator[str]:
        floor = contract_horizon()
        if self.horizon_seconds is not None and (floor is None or self.horizon_seconds < floor):
            wanted = "for ever" if floor is None else f"for {timedelta(seconds=floor)}"
            yield f"the policy lowers the replay horizon to {self.horizon}; the contract wants records kept {wanted}"

    def _departures(self) -> Iterator[str]:
        for word in WORDS:
            if self.renames(word):
                yield f"the policy takes the column {self.column(word)} for {word}"
        if set(self.operations) != set(contract_operations()):
            known = ", ".join(contract_operations())
            yield f"the policy admits the operations {', '.join(self.operations)}; the contract knows {known}"
        yield from self._lowered()
        if self.max_age > DEFAULT_MAX_AGE:
            yield f"the policy lets a proof stand for {self.max_age} instead of {DEFAULT_MAX_AGE}"
        for name in sorted(self.reviewed):
            yield f"the policy says that {name} was reviewed"
        if self.domain_evidence is not None:
            yield f"the policy declares the domain in words: {self.domain_evidence}"
        if self.sqlite_writer_uid is not None:
            uid = self.sqlite_writer_uid
            yield f"the policy declares, and no file can show, that the writer runs as the user {uid}"
        if self.sqlite_connection:
            described = ", ".join(f"{name}={value}" for name, value in sorted(self.sqlite_connection.items()))
            yield f"the policy declares, and no file can show, that every connection of the writer sets {described}"


def policy_of(data: Any, *, where: str) -> Policy:
    """The policy in JSON values; `where` is how errors call it. Raises PolicyError."""
    problem = schema.explain(schema.published_validator("fitness-policy"), data)
    if problem is not None:
        raise PolicyError(
            f"{where}: does not fit fitness-policy.schema.json: {problem}; see specs/schemas/fitness-policy.schema.json"
        )
    # 60.0 is an integer to a schema.
    policy = convert(data, Policy, strict=False)
    _no_column_twice(policy, where)
    return policy


def _no_column_twice(policy: Policy, where: str) -> None:
    taken: dict[str, str] = {}
    for word in WORDS:
        column = policy.column(word)
        if column in taken:
            raise PolicyError(
                f"{where}: the column {column} is taken for {taken[column]} and for {word}; "
                "one column cannot prove two things: name another one"
            )
        taken[column] = word


def read_policy(path: Path) -> Policy:
    """Read a policy file, YAML or JSON. Raises PolicyError."""
    try:
        data = read_yaml(path)
    except SpecError as error:
        raise PolicyError(str(error)) from error
    return policy_of({} if data is None else data, where=str(path))


def policy_from_proof(held: Policy, *, where: str) -> Policy:
    """The policy that a proof holds. Raises PolicyError."""
    given = {name: value for name, value in json_of(held).items() if value is not None or name == _HORIZON}
    policy = policy_of(given, where=where)
    if policy.written() != held:
        raise PolicyError(f"{where}: the policy is not in the form in which a proof holds it")
    return policy
