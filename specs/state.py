"""How the harness observes the state of an implementation, and the roles that have one, as a contract says it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from holdfast.specs.entry import Entry, Name, Placed, Text, text


class Inspection(Entry, frozen=True):
    """A store whose place in the workdir and format the contract fixes: the harness can inspect it itself."""

    path: Annotated[str, text("^[A-Za-z0-9_][A-Za-z0-9._-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)*$")]
    format: Literal["sqlite", "rocksdb"]


class Inertness(Entry, frozen=True):
    """How the harness sees that a refusal changed nothing: by an observation, or by inspecting the store itself.

    `tree` is a folder of the workdir that it lists besides: no refusal may leave a file there, or take one away.
    """

    seen_by: Literal["self-reported", "harness"]
    observe: Name | None = None
    audit: Name | None = None
    audit_list: Name | None = None
    audit_code: Name | None = None
    tree: (
        Annotated[str, Meta(max_length=1024), text("^[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$")]
        | None
    ) = None

    @property
    def by_harness(self) -> bool:
        """Whether the harness inspects the store."""
        return self.seen_by == "harness"


class Role(Entry, frozen=True):
    """A part of a contract that an implementation may claim alone. Clauses and methods name it.

    Its state is observed as the contract says, unless it says that itself or is `stateless`.
    """

    name: Placed
    title: Text
    inertness: Inertness | None = None
    stateless: Annotated[Text, Meta(description="Why a refusal has nothing that it could change.")] | None = None
