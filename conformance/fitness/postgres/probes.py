"""The probes on the clone, by the roles themselves. A refusal counts only beside its accepted twin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import psycopg

from holdfast.conformance.fitness.errors import LostError
from holdfast.conformance.fitness.model import SUFFIX, EvidenceClass, Part, Probe, Snapshot, Surface
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres import races
from holdfast.conformance.fitness.postgres.clone import Clone
from holdfast.conformance.fitness.postgres.ground import PostgresGround
from holdfast.conformance.fitness.postgres.sessions import Session
from holdfast.conformance.fitness.trying.admission import admission, consumed, read_back
from holdfast.conformance.fitness.trying.building import ProbeBuilder, rolled_back
from holdfast.conformance.fitness.trying.rows import RowError
from holdfast.conformance.fitness.trying.tampering import tampering


def probe_clone(clone: Clone, surface: Surface, snapshot: Snapshot, policy: Policy) -> tuple[Probe, ...]:
    """Everything that can be tried on the clone of `surface`: the statements and their answers.

    Without a writer the owner of the effect acts in its place, and a probe that only a writer can pass has failed.
    """
    made: list[Probe] = []
    try:
        for probe in _probes(clone, surface, snapshot, policy):
            made.append(probe)  # noqa: PERF402 - what was made before an error counts
    except (RowError, LostError, psycopg.Error) as error:
        name = "rest" if made else "first"
        made.append(Probe(name, EvidenceClass.CLONE, (), (), f"the probes could not go on: {error}"))
    return tuple(made)


def _probes(clone: Clone, surface: Surface, snapshot: Snapshot, policy: Policy) -> Iterator[Probe]:
    with closing(clone.scratch.connect(clone.dsn)) as connection, ExitStack() as stack:
        helper = stack.enter_context(clone.opened(("helper", clone.scratch.superuser)))[0]
        ground = PostgresGround(connection, snapshot)
        builder = ProbeBuilder(ground, surface, policy, helper=helper, evidence=EvidenceClass.CLONE)
        writer = surface.writer or builder.table(Part.EFFECT).owner
        session = stack.enter_context(clone.opened(("writer", writer)))[0]
        first = builder.fresh()
        admitted = consumed(builder, session, first)
        yield admitted
        if any(answer.sqlstate is not None for answer in admitted.answers):
            return
        yield from admission(builder, session, first)
        yield read_back(builder, clone, writer, first)
        # Rows of the audit are learnt here.
        yield from tampering(builder, clone, surface, first)
        yield from _strangers(builder, clone, helper)
        yield from races.races(builder, clone, writer, helper, first)


def _strangers(builder: ProbeBuilder, clone: Clone, helper: Session) -> Iterator[Probe]:
    with clone.opened(("stranger", clone.stranger)) as (stranger,):
        for part in (*builder.order, *builder.audit):
            attempt, sample = builder.attempt(f"stranger-insert{SUFFIX[part]}"), builder.fresh()
            # The rows that the row refers to are there, so that only the right to insert can be missing.
            for before in builder.before(part):
                builder.send(attempt, helper, builder.insert(before, sample), sample)
            with rolled_back(stranger):
                builder.send(attempt, stranger, builder.insert(part, sample), sample)
            yield attempt.done()
