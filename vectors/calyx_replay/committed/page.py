"""The parts of the envelopes of `calyx-replay`: two senders, one letter, and the members of its header.

This module does not sign or sort. Members are in the order in which they are hashed, signatures are literals.
The senders are those of `holdfast.vectors.calyx_replay.derive`, whose seed is the SHA-256 of their name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.vectors.calyx_replay.envelopes.record import EnvelopeVector

CONTRACT, VERSION, HELLO = "calyx-replay", "calyx-mail/0.1", "aGVsbG8"
MSG_ID, RECIPIENT, MOMENT = "0f0e0d0c-0b0a-4908-8706-050403020100", "ab" * 32, "2026-01-01T00:00:00Z"
DRAFT = {"msg_id": MSG_ID, "recipient_fp": RECIPIENT, "timestamp": MOMENT}
# Members of the header, as they stand in it.
ID, TO, AT = f'"msg_id":"{MSG_ID}"', f'"recipient_fp":"{RECIPIENT}"', f'"timestamp":"{MOMENT}"'
ALICE_FP = "1c0c490f1b5528d8173c5de46d131160e4b2c0c3c40a199dd6c1fcbd697a0201"
ALICE_KEY = "1b9KP8znF7A4i8wnSevBSK2ZabI_Re4bYF_Vh3hXasQ"
BOB_FP = "34fec43c7fcab9aef3b3cf8aba855e41ee69ca3a6e3faae9dd2033fa1369e6b1"
BOB_KEY = "7MG1hyfz8SsxlIgansud4LKM57IHIw2Okw_hvOdeJWw"
ALICE = f'"sender_fp":"{ALICE_FP}","sender_key":"{ALICE_KEY}"'
BOB = f'"sender_fp":"{BOB_FP}","sender_key":"{BOB_KEY}"'
PLAIN_HEADER = f"{ID},{TO},{ALICE},{AT}"
PLAIN_SIGNATURE = "HJIOvIxagXvjx2681V9MsoObnV-351FrSMzkmONvRZY84DOHDf1iOMELJN1bhRNJxM8y_ps5G9m0K8Wf3iGwAQ"


def spelled(header: str, signature: str, *, ciphertext: str = HELLO, version: str = VERSION) -> str:
    """An envelope in its one spelling, if the members of the header are in theirs."""
    around = f'"protocol_version":"{version}","signature":"{signature}"'
    return f'{{"ciphertext":"{ciphertext}","header":{{{header}}},{around}}}'


PLAIN = spelled(PLAIN_HEADER, PLAIN_SIGNATURE)


def draft(changed: Mapping[str, Any], **more: Any) -> Mapping[str, Any]:
    """The arguments of `calyx.envelope`: the plain one, with these members of its header and further ones beside it."""
    return {"key": "alice", "header": {**DRAFT, **changed}, "ciphertext": HELLO, **more}


def record(name: str, clause: str, data: str | bytes, note: str, **members: Any) -> EnvelopeVector:
    """One record; the ids of clauses and records without what all of them begin with."""
    return EnvelopeVector(
        id=f"calyx-{name}",
        contract=CONTRACT,
        clause=f"CALYX-{clause}",
        envelope=data.encode("utf-8") if isinstance(data, str) else data,
        note=note,
        **{"replay_key": None, "reasons": (), "derivation": "calyx.envelope", "twin": None, **members},
    )
