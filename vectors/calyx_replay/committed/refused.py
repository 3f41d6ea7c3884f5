"""Envelopes that `calyx-replay` has to refuse: other spellings of one envelope, malformed ones, bad signatures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.vectors.calyx_replay.committed.page import (
    ALICE,
    ALICE_FP,
    ALICE_KEY,
    AT,
    BOB_FP,
    HELLO,
    ID,
    MSG_ID,
    PLAIN,
    PLAIN_HEADER,
    PLAIN_SIGNATURE,
    RECIPIENT,
    TO,
    VERSION,
    draft,
    record,
    spelled,
)
from holdfast.vectors.calyx_replay.envelopes.record import EnvelopeVector

MALFORMED, UNSIGNED = ("ENVELOPE_MALFORMED",), ("SIGNATURE_INVALID",)


def records() -> Iterator[EnvelopeVector]:
    """Other spellings of `plain`, malformed envelopes with a good signature, and signatures that must not pass."""
    yield from _respelled()
    yield from _malformed()
    yield from _forged()


def _respelled() -> Iterator[EnvelopeVector]:
    for name, data, note in _spellings():
        yield record(
            f"spelling-{name}",
            "KEY-6",
            data,
            note,
            reasons=MALFORMED,
            derivation="calyx.variant",
            of={"how": name},
            twin="calyx-plain",
        )


def _spellings() -> Iterator[tuple[str, str | bytes, str]]:
    """Other spellings of `plain`: the name of the derivation's variant, the bytes, and what is wrong with them."""
    version, signature = f'"protocol_version":"{VERSION}"', f'"signature":"{PLAIN_SIGNATURE}"'
    yield "duplicate-member", f"{PLAIN[:-1]},{version}}}", "protocol_version is there twice, with one value"
    yield (
        "member-order",
        f'{{{version},"header":{{{PLAIN_HEADER}}},"ciphertext":"{HELLO}",{signature}}}',
        "the members stand in the order in which the source names them",
    )
    yield (
        "whitespace",
        PLAIN.replace('":', '": ').replace('",', '", ').replace("},", "}, "),
        "a blank behind every colon and every comma",
    )
    yield "unicode-escape", PLAIN.replace(':"calyx', ':"\\u0063alyx'), "an escape for a letter"
    yield (
        "escaped-solidus",
        PLAIN.replace("calyx-mail/", "calyx-mail\\/"),
        "an escape that JSON allows and nobody needs",
    )
    yield "bom", b"\xef\xbb\xbf" + PLAIN.encode("utf-8"), "a byte order mark before it"
    yield "leading-space", f" {PLAIN}", "a blank before it"
    yield "trailing-newline", f"{PLAIN}\n", "a line feed behind it"
    yield "trailing-bytes", f"{PLAIN}{{}}", "another object behind it"
    yield "trailing-nul", f"{PLAIN}\x00", "a NUL behind it, where a string in C ends"
    yield "utf-16", b"\xff\xfe" + PLAIN.encode("utf-16-le"), "UTF-16 with its mark"
    yield "padded-signature", PLAIN.replace(PLAIN_SIGNATURE, f"{PLAIN_SIGNATURE}=="), "base64 with padding"
    yield (
        "spare-bits-signature",
        PLAIN.replace(PLAIN_SIGNATURE, f"{PLAIN_SIGNATURE[:-1]}R"),
        "of the last character a bit that means nothing",
    )
    yield "padded-sender-key", PLAIN.replace(ALICE_KEY, f"{ALICE_KEY}="), "base64 with padding"
    yield (
        "spare-bits-sender-key",
        PLAIN.replace(ALICE_KEY, f"{ALICE_KEY[:-1]}R"),
        "of the last character a bit that means nothing",
    )
    yield "padded-ciphertext", PLAIN.replace(HELLO, "aGVsbG8="), "base64 with padding"
    yield "spare-bits-ciphertext", PLAIN.replace(HELLO, "aGVsbG9"), "of the last character a bit that means nothing"
    yield "uppercase-fp", PLAIN.replace(ALICE_FP, ALICE_FP.upper()), "the sender's fingerprint in upper case"
    yield "uppercase-recipient", PLAIN.replace(RECIPIENT, "AB" * 32), "the recipient's fingerprint in upper case"
    yield "uppercase-msg-id", PLAIN.replace(MSG_ID, MSG_ID.upper()), "the message id in upper case"
    yield (
        "extra-member",
        PLAIN.replace('"protocol_version"', '"note":"beside","protocol_version"'),
        "a fifth member, which the signature does not cover",
    )


def _malformed() -> Iterator[EnvelopeVector]:
    """Malformed envelopes in the canonical spelling and with a good signature."""
    for name, clause, text, of, note in _NO_ENVELOPES:
        yield record(name, clause, text, note, reasons=MALFORMED, of=of, twin="calyx-plain")


_NO_ENVELOPES: tuple[tuple[str, str, str, Mapping[str, Any], str], ...] = (
    (
        "other-version",
        "KEY-4a",
        spelled(
            PLAIN_HEADER,
            "QOsP0sb15suloKKpVNp1ppmoBU5d_d6fb1OvGgjMhKxThES2z0GoGlaQLNlEUKF5YgUdHlpGnvmHHauY1pl9Cg",
            version="calyx-mail/0.2",
        ),
        draft({}, protocol_version="calyx-mail/0.2"),
        "another version of the protocol",
    ),
    (
        "version-in-upper-case",
        "KEY-4a",
        spelled(
            PLAIN_HEADER,
            "X0tm1eo3hjtvDoPPrAncY-XNfJWlaZmCCVeXQdCBSIyd7Utgk3-F33CMr7wGANB8_UE_1ykScVWeJYeaYnfBDg",
            version="CALYX-MAIL/0.1",
        ),
        draft({}, protocol_version="CALYX-MAIL/0.1"),
        "the version in upper case is another one",
    ),
    (
        "id-of-version-1",
        "SCH-14",
        spelled(
            f'"msg_id":"0f0e0d0c-0b0a-1908-8706-050403020100",{TO},{ALICE},{AT}',
            "x2ySfH82Fj-qONIeRycD1o5yOl_pN0ER1AiuAqcnMDVZ4e5_Kr9vtE_r4XslbKkDfSx4sxQs49mFU4_7c9OtDA",
        ),
        draft({"msg_id": "0f0e0d0c-0b0a-1908-8706-050403020100"}),
        "a UUID of another version",
    ),
    (
        "id-without-hyphens",
        "SCH-14",
        spelled(
            f'"msg_id":"0f0e0d0c0b0a49088706050403020100",{TO},{ALICE},{AT}',
            "Q90WCsjdCWEvi0mOO_vjzIFh6hmsSieQB6g1A4vf1MIhcU_CMM3wF_cD7Kgp5R4vEHRnjUBwNjC6fUjT9zLhBQ",
        ),
        draft({"msg_id": "0f0e0d0c0b0a49088706050403020100"}),
        "another spelling of the same UUID",
    ),
    (
        "fingerprint-of-another",
        "KEY-6",
        spelled(
            f'{ID},{TO},"sender_fp":"{BOB_FP}","sender_key":"{ALICE_KEY}",{AT}',
            "fWNbAHdwNRdLxmyAaVvPMQADouk7v8_mTeZhSnepLFA0Y_2wO2sY4AqS2a6Qv0jUhVgRej7ajp0evbKD9wEqCQ",
        ),
        draft({"sender_fp": BOB_FP}),
        "the fingerprint is not that of the key, which has signed",
    ),
    (
        "recipient-too-short",
        "KEY-6",
        spelled(
            f'{ID},"recipient_fp":"{"ab" * 31}",{ALICE},{AT}',
            "-HdTNuoKAW-eW5D9cPKMrL80b6Osg66VTN02eVREA3zgQBf3bV3MPljPgACyY_7rgp7GZDncsbFJO5ram91NBw",
        ),
        draft({"recipient_fp": "ab" * 31}),
        "62 digits are no fingerprint",
    ),
    (
        "without-id",
        "KEY-6",
        spelled(
            f"{TO},{ALICE},{AT}",
            "DiI2SaWftR5ZDOLlP12wEGdiwuL9OW12M86U1yLVGlP__YpRxuBTM0Bn1u09I96uJiysh6tMOiYpxQfwCk-aCQ",
        ),
        draft({}, drop=["header.msg_id"]),
        "no message id",
    ),
    (
        "without-timestamp",
        "KEY-6",
        spelled(
            f"{ID},{TO},{ALICE}",
            "rZhp9VNf5hkrvphSGzrEk-bA04epc0vDWaejeStsLBzab2zPdwYiIjgb3luS60jE0oE_Kf4I7XZg1FnId70qCg",
        ),
        draft({}, drop=["header.timestamp"]),
        "no timestamp",
    ),
    (
        "member-is-a-number",
        "KEY-6",
        spelled(
            f'"hops":1,{PLAIN_HEADER}',
            "OF6Qtow8N0mBqBr-EMuDkeeJ1CNIGDn5rJMqFYNAHsDeLaQmCYCsQsZzPt7nfvWzSLoRACHB-Tfr5L8uGq32Bw",
        ),
        draft({"hops": 1}),
        "a further member is a text",
    ),
    (
        "member-is-null",
        "KEY-6",
        spelled(
            f'{ID},{TO},{ALICE},"subject":null,{AT}',
            "nvh9cBNwQ2_k3-fHm6Vu4cEPdylQnkL62yMhUjvHKiATc8vWmrFzD9O39ktp-DI09AgWcf1XMwCdRWdYG7o-Bw",
        ),
        draft({"subject": None}),
        "null is no text",
    ),
    (
        "without-signature",
        "KEY-6",
        f'{{"ciphertext":"{HELLO}","header":{{{PLAIN_HEADER}}},"protocol_version":"{VERSION}"}}',
        draft({}, drop=["signature"]),
        "no signature",
    ),
)


def _forged() -> Iterator[EnvelopeVector]:
    """Envelopes in the canonical spelling with a wrong signature; most are variants of the sender's own."""
    for name, reasons, how, signature, note in _MALLEATED:
        yield record(
            f"signature-{name}",
            "KEY-7",
            spelled(PLAIN_HEADER, signature),
            note,
            reasons=reasons,
            derivation="calyx.malleated",
            of=how,
            twin="calyx-plain",
        )
    for name, header, ciphertext, signature, how, note in _NOT_SIGNED:
        yield record(
            f"forged-{name}",
            "ALG-10",
            spelled(header, signature, ciphertext=ciphertext),
            note,
            reasons=UNSIGNED,
            derivation="calyx.altered",
            of={**how, "resign": False},
            twin="calyx-plain",
        )


_MALLEATED: tuple[tuple[str, tuple[str, ...], Mapping[str, str], str, str], ...] = (
    (
        "s-plus-l",
        UNSIGNED,
        {"how": "s-plus-l"},
        "HJIOvIxagXvjx2681V9MsoObnV-351FrSMzkmONvRZYptCnkJ2B1kJeoG4A6f_JdxM8y_ps5G9m0K8Wf3iGwEQ",
        "the order of the group is added to S, which any third party can do",
    ),
    (
        "r-of-another-sign",
        UNSIGNED,
        {"how": "r-reencoded"},
        "HJIOvIxagXvjx2681V9MsoObnV-351FrSMzkmONvRRY84DOHDf1iOMELJN1bhRNJxM8y_ps5G9m0K8Wf3iGwAQ",
        "the sign of R is the other one",
    ),
    (
        "r-beyond-the-prime",
        UNSIGNED,
        {"how": "r-reencoded", "key": "alice"},
        "7v_______________________________________39dglBscmV-L43ZnNkZQba7E9vqlFlb81Qfq9-TaCzxCA",
        "R is the identity, in an encoding beyond the field's prime; whoever decodes it leniently finds it good",
    ),
    (
        "tail",
        (*UNSIGNED, *MALFORMED),
        {"how": "trailing-bytes"},
        f"{PLAIN_SIGNATURE}A",
        "a byte behind the 64",
    ),
)
_NOT_SIGNED: tuple[tuple[str, str, str, str, Mapping[str, str], str], ...] = (
    (
        "signature",
        PLAIN_HEADER,
        HELLO,
        f"HZ{PLAIN_SIGNATURE[2:]}",
        {"part": "signature"},
        "one bit of the signature",
    ),
    (
        "ciphertext",
        PLAIN_HEADER,
        "aWVsbG8",
        PLAIN_SIGNATURE,
        {"part": "ciphertext"},
        "one bit of the ciphertext, under the signature of another",
    ),
    (
        "recipient",
        f'{ID},"recipient_fp":"{"ab" * 31}a0",{ALICE},{AT}',
        HELLO,
        PLAIN_SIGNATURE,
        {"part": "header.recipient_fp"},
        "another recipient, under the signature of the first",
    ),
    (
        "timestamp",
        f'{ID},{TO},{ALICE},"timestamp":"2026-01-01T00:00:01Z"',
        HELLO,
        PLAIN_SIGNATURE,
        {"part": "header.timestamp"},
        "an old letter with a new timestamp",
    ),
)
