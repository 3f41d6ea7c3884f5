"""The reference agrees with every committed envelope: its key, or that it is refused and for what."""

from __future__ import annotations

import pytest

from holdfast.reference_impl.calyx_replay.codec import EnvelopeError
from holdfast.reference_impl.calyx_replay.factory import REFERENCE
from holdfast.reference_impl.calyx_replay.service import Parts
from holdfast.reference_impl.calyx_replay.signatures import Signatures
from holdfast.vectors.calyx_replay.envelopes import load

VECTORS = {record.id: record for record in load() if record.contract == "calyx-replay"}


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return REFERENCE.parts(tmp_path_factory.mktemp("codec"), {})


@pytest.mark.parametrize("identifier", VECTORS)
def test_codec_and_signatures_agree_with_the_vector(identifier: str, parts: Parts) -> None:
    record, signatures = VECTORS[identifier], Signatures()
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
