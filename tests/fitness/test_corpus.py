"""Every schema of the corpus is judged as it deserves, criterion by criterion.

By default those that are marked `always`, one for each kind; with `-m sweep` the others.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from holdfast.conformance.fitness.model import Criterion, Evidence, Standing, Status
from holdfast.conformance.fitness.postgres.scratch import Scratch
from tests.fitness.contradicting import contradictions
from tests.fitness.lives import LiveServer
from tests.fitness.schemas import DATABASE, Schema, schemas

ALL = schemas()


@pytest.mark.parametrize(
    "schema",
    [pytest.param(schema, id=schema.id, marks=() if schema.always else pytest.mark.sweep) for schema in ALL],
)
def test_schema_is_judged_as_it_deserves(schema: Schema, live_server: LiveServer, clones: Scratch) -> None:
    with live_server.database(DATABASE) as connection:
        schema.make(connection)
        found = schema.inspect(live_server, connection, clones)
    judgement = found.judgement
    if schema.status is Status.NOT_PRESENT:
        assert (judgement.status, found.evidence) == (Status.NOT_PRESENT, None)
        return
    observed = {finding.criterion.value: finding for finding in judgement.findings}
    assert {
        letter: finding.standing for letter, finding in observed.items() if finding.standing is not Standing.PROVEN
    } == (schema.standings), [(reason.criterion.value, reason.code, reason.text) for reason in judgement.reasons]
    for letter, wanted in schema.codes.items():
        assert wanted <= {reason.code for reason in observed[letter].reasons}
    assert judgement.status is schema.status
    assert found.evidence is not None
    assert contradictions(found.evidence, judgement, partial(_refused, found.evidence)) == []


def _refused(evidence: Evidence, name: str) -> bool:
    probe = evidence.probe(name)
    state = None if probe is None or probe.answer is None else probe.answer.sqlstate
    # By the surface: a constraint, a guard or a privilege.
    return state is not None and (state.startswith(("23", "P0")) or state in ("42501", "0A000"))


def test_corpus_is_large_and_every_criterion_is_refuted_somewhere() -> None:
    assert len(ALL) >= 60
    assert [name for name, count in Counter(schema.id for schema in ALL).items() if count > 1] == []
    refuted = {letter for schema in ALL for letter, how in schema.standings.items() if how is Standing.REFUTED}
    assert refuted == {criterion.value for criterion in Criterion}
    assert sum(schema.status is Status.FIT for schema in ALL) >= 10
