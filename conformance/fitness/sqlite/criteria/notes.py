"""What proves nothing about a surface in SQLite files, but its reader must know."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.conformance.fitness.model import Evidence


def notes(evidence: Evidence) -> tuple[str, ...]:
    """What proves nothing, but the reader must know. From the evidence alone, so that every reader has the same."""
    return tuple(_notes(evidence))


def _notes(evidence: Evidence) -> Iterator[str]:
    described = evidence.snapshot.circumstances
    yield f"read and probed with SQLite {described['version']}; the registrar's own library may be another one"
    yield (
        "SQLite has no roles: a user who may write the file can drop its guards, switch checks off "
        "(ignore_check_constraints, writable_schema) or write its pages; give the registrar an account of its own"
    )
    for row in described.get("broken", ()):
        yield (
            f"{row['file']}: the view {row['view']} is broken ({row['error']}): it was left out, and everything else "
            "was judged; drop it or make it anew"
        )
    for name, file in sorted(described["files"].items()):
        mode = evidence.snapshot.structure[f"{name}.journal"][0]["mode"]
        yield f"{name}: {file} on {described['filesystems'][name] or 'an unknown file system'}, journal: {mode}"
    yield "temporary triggers and views, and programs that delete, are in no file: nothing is known of them"
