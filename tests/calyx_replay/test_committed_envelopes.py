"""The reference agrees with every committed envelope: its key, or that it is refused and for what."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast.reference_impl.calyx_replay.codec import EnvelopeError
from holdfast.reference_impl.calyx_replay.factory import REFERENCE
from holdfast.reference_impl.calyx_replay.service import Parts
from holdfast.vectors.calyx_replay.envelopes import load
from tests.calyx_replay.conftest import Opener

VECTORS = {record.id: record for record in load() if record.contract == "calyx-replay"}
# The moment of `plain`; all timestamps are in the window around it.
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return REFERENCE.parts(tmp_path_factory.mktemp("codec"), {})


@pytest.mark.parametrize("identifier", VECTORS)
def test_codec_and_signatures_agree_with_the_vector(identifier: str, parts: Parts) -> None:
    record, signatures = VECTORS[identifier], REFERENCE.signatures()
    try:
        envelope = parts.codec.decode(record.envelope)
    except EnvelopeError:
        assert "ENVELOPE_MALFORMED" in record.reasons
        return
    assert envelope.canonical == record.envelope
    assert signatures.valid(envelope) is (record.replay_key is not None)
    if record.replay_key is None:
        assert "SIGNATURE_INVALID" in record.reasons
    else:
        assert parts.codec.replay_key(envelope) == record.replay_key


def test_no_envelope_is_a_copy_of_another_and_no_refused_one_is_accepted_beside_it(opener: Opener) -> None:
    box = opener(now=MOMENT)
    for record in VECTORS.values():
        expected = ("new",) if record.replay_key is not None else record.reasons
        assert box.outcome(record.envelope) in expected, record.id
    assert box.keys() == {record.replay_key for record in VECTORS.values()} - {None}
