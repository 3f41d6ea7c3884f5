"""Envelopes of `calyx-replay` that are accepted: their canonical bytes spelt out, and the keys over them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.vectors.calyx_replay.committed import refused
from holdfast.vectors.calyx_replay.committed.page import (
    ALICE,
    AT,
    BOB,
    ID,
    PLAIN,
    PLAIN_HEADER,
    TO,
    draft,
    record,
    spelled,
)
from holdfast.vectors.calyx_replay.envelopes.record import EnvelopeVector


def records() -> Iterator[EnvelopeVector]:
    """Accepted envelopes, other spellings of `plain`, malformed envelopes with a good signature, and bad signatures."""
    yield from _accepted()
    yield from refused.records()


def _keyed(name: str, clause: str, text: str, of: Mapping[str, Any], note: str) -> EnvelopeVector:
    return record(name, clause, text, note, replay_key=hashlib.sha256(text.encode("utf-8")).hexdigest(), of=of)


def _accepted() -> Iterator[EnvelopeVector]:
    yield _keyed("plain", "KEY-1", PLAIN, draft({}), "the envelope that the others are changed from")
    yield _keyed(
        "no-ciphertext",
        "KEY-1",
        spelled(
            PLAIN_HEADER,
            "KDKqYaPsbMKRsPuRkZBdJAhC6NCkUPsaHzxBsFeyDpeSejT3FKEK6qKg8F55lu9NK9AVCpmp1R5PRQGl3KKhCQ",
            ciphertext="",
        ),
        draft({}, ciphertext=""),
        "no bytes at all are a ciphertext",
    )
    yield _keyed(
        "one-bit",
        "KEY-4c",
        spelled(
            PLAIN_HEADER,
            "IQ5xl1OQXhfa4i6LkA8yoMVOJ5t-E8rqz7HeZpVLXW0uOVNyRmYyE0l8xqStqOQ_nJEUKIOu3D5ABxP7uYNCDw",
            ciphertext="aGVsbG4",
        ),
        draft({}, ciphertext="aGVsbG4"),
        "one bit of the ciphertext, under the same message id",
    )
    yield _keyed(
        "another-sender",
        "KEY-4b",
        spelled(
            f"{ID},{TO},{BOB},{AT}",
            "VQwRkV3qYwuYZFfxEmbNgH7z2L5LNagnT5cF3u5RnjL8OXTpRy3IsKvgouvrv7tEf-dALE8n6GkKrmgJxxjhBg",
        ),
        draft({}, key="bob"),
        "the same letter of somebody else",
    )
    for name, clause, header, signature, changed, note in _OF_OTHER_HEADERS:
        yield _keyed(name, clause, spelled(header, signature), draft(changed), note)


_OF_OTHER_HEADERS: tuple[tuple[str, str, str, str, Mapping[str, str], str], ...] = (
    (
        "another-id",
        "KEY-4b",
        f'"msg_id":"0f0e0d0c-0b0a-4908-8706-050403020101",{TO},{ALICE},{AT}',
        "0y3rdaMcEsF73Ms1-mBw2QpoxZ80UoOYP8N_8yeYs8p1u_pQyBbYppKq8OmNj0dPpL5TCbx7i8iNqAi7ww5gDQ",
        {"msg_id": "0f0e0d0c-0b0a-4908-8706-050403020101"},
        "the last digit of the message id",
    ),
    (
        "another-recipient",
        "KEY-4b",
        f'{ID},"recipient_fp":"{"ab" * 31}ac",{ALICE},{AT}',
        "DM7JZ2GEUNz0M8kx3gugLP8Tje98JHZ_N-frLFW86ATg0bNJEtQsWcwJzoyUhJ6lPYoyTVcaLM83GPQS_RXcCg",
        {"recipient_fp": "ab" * 31 + "ac"},
        "the last digit of the recipient",
    ),
    (
        "a-second-later",
        "KEY-4b",
        f'{ID},{TO},{ALICE},"timestamp":"2026-01-01T00:00:01Z"',
        "nVTcw_ptt1kt9N9W9ysyuF3Cg1WRI2cGzGmyEg7zyL3bqiPs_wewj0O7UwxByCbx7PcVAU-dbRg47W8YDaxUAw",
        {"timestamp": "2026-01-01T00:00:01Z"},
        "the timestamp",
    ),
    (
        "fraction-of-nothing",
        "KEY-4b",
        f'{ID},{TO},{ALICE},"timestamp":"2026-01-01T00:00:00.0Z"',
        "ReJanv0it3Hol07h82SGwYbJxhC8gvBu03wjVfoOnwtcVscs8ZplaefeP8oXZmSPcprkfuvMScItrv3J4SlADA",
        {"timestamp": "2026-01-01T00:00:00.0Z"},
        "the same instant as in plain, in other characters: a timestamp is hashed as the text that it is",
    ),
    (
        "six-digits",
        "KEY-4b",
        f'{ID},{TO},{ALICE},"timestamp":"2025-12-31T23:59:59.999999Z"',
        "AICpvVz5m7dwza6gKgFpo7UA9XwoVEuFOyz1Nn-UmOVec3WlRrl5CXvXM0_W_TvUu0I3fDpxLOz9pCcks36dDQ",
        {"timestamp": "2025-12-31T23:59:59.999999Z"},
        "as many fractional digits as there may be",
    ),
    (
        "empty-member",
        "KEY-4b",
        f'{ID},{TO},{ALICE},"subject":"",{AT}',
        "wxFRER4o9Cr3vKPMXAnhS1t2kbg4ZR1SzAwJqRJqGt7-ffYwT0eSlfbxORh9qBdXP4W7oOvLv5OucQnIw103DA",
        {"subject": ""},
        "a further member that is empty is there",
    ),
    (
        "composed",
        "KEY-1",
        f'{ID},{TO},{ALICE},"subject":"caf\u00e9",{AT}',
        "W7Snrudjrl6l1tU22ToMgFYiL6mb6Gzp_4z1fUoFoM8NA0qgonzQX9Q_8I-nYGugexB6vUTfMpQS74f-S1mbAQ",
        {"subject": "caf\u00e9"},
        "a letter with an accent",
    ),
    (
        "decomposed",
        "KEY-1",
        f'{ID},{TO},{ALICE},"subject":"cafe\u0301",{AT}',
        "VUEwtBEImh1qD3acqVK4jODFuyBI6LJtrsqDzS8bWasuBMjJM6M1djYs4iA0XCmjwQGGGwQb6B9SJj8Zidl4Ag",
        {"subject": "cafe\u0301"},
        "a letter and an accent: nothing is normalised",
    ),
    (
        "escapes",
        "KEY-1",
        f'{ID},{TO},{ALICE},"subject":"\\" \\\\ / \\b \\f \\n \\r \\t \\u0000 \\u001f \x7f \u2028",{AT}',
        "CW6-WlFwdpPnbZK4JWK-WdWSKRLYJWCoGpLCiOjXqQeFKg-_h36FgV_WqBFI1rYnuC91HEGMGMJ1cr3KE1ucBg",
        {"subject": '" \\ / \b \f \n \r \t \x00 \x1f \x7f \u2028'},
        "what is escaped, in the one way that it is, and what is not",
    ),
    (
        "all-kinds",
        "KEY-1",
        f'{ID},{TO},{ALICE},"subject":"\u00e9 \u4e2d \U0001f4a1 \ufb33 \u05d0 \ufeff",{AT}',
        "x1yngRqOX7Frm8tqsWrIUCqvuDTqsdui_5FIfzXnyEnxNKUiL0mIEqDW_G53KUSkiQYBpTZAoSN4ETATBeF-DA",
        {"subject": "\u00e9 \u4e2d \U0001f4a1 \ufb33 \u05d0 \ufeff"},
        "text beyond ASCII stands in UTF-8, a byte order mark inside it too",
    ),
    (
        "order-of-names",
        "KEY-1",
        f'"":"a","A":"b",{ID},{TO},{ALICE},{AT},"x-\U0001f4a1":"c","x-\ufb33":"d","\u00e9":"e"',
        "rTVSly_BsAX8CTuf_pgVgANLz9ActkgSLAWb5qQRSziDUTa7TxRrer4FzgHGq9rdZRM1Cmqjn7o6Jr1JZzIHBw",
        {"\u00e9": "e", "x-\ufb33": "d", "x-\U0001f4a1": "c", "A": "b", "": "a"},
        "names are sorted by UTF-16 code units, where U+1F4A1 comes before U+FB33",
    ),
    (
        "carries-a-key",
        "KEY-8",
        f'{ID},{TO},"replay_key":"{"00" * 32}",{ALICE},{AT}',
        "Zf0-Ou1RwL-BadAn5nm_GkF0smb4cTS2-myOh12PPFZy0VcAlgTYWUg82jDH6UnmtHtENiPHjKHNLrNrFAO0Cg",
        {"replay_key": "00" * 32},
        "a key in the header is hashed like any further member, and is not the key",
    ),
)
