"""Which text is which key (IK-KEY)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.suites.idempotency_key.client import Got, Service, service

_REFUSED = ("MALFORMED",)
_HOSTILE = (
    *("' OR '1'='1", "'; DROP TABLE records; --", "*", "[a-z]*", "%", "_", "../../etc/passwd", "a/../b", "$ne", "{}"),
    *("${x}", "a\\b", "a?b", "KEYS *", "__proto__", "constructor"),
)
# Equal in CRC-32, FNV-1a and the hash of Java, whatever stands behind both; and equal as numbers.
_COLLIDING = (("Aa", "BB"), ("plumless", "buckeroo"), ("costarring", "liquid"), ("declinate", "macallums"))
_NUMBERS = (("1000", "1e3"), ("007", "7"), ("1.0", "1"), ("0x10", "16"))
# Bytes that are no UTF-8: what decodes them may make one text of each two. As ISO 8859-1.
_NO_UTF8 = (("\xfc", "\xf6"), ("\xc3(", "\xe2("), ("\xed\xa0\x80", "\xed\xa0\x81"))
# Lengths at which columns and buffers end.
_ENDS = (36, 64, 128, 255, 256, 512)


@clause("IK-KEY-1")
def test_a_key_has_one_reading_in_every_spelling(bench: Bench) -> None:
    """Parameters and blanks around a String mean nothing; its quotes and escapes are no part of it."""
    with service(bench) as s:
        if s.profile["key_syntax"] != "sf":
            tag, key = s.tag(), s.key()
            first = s.first(tag, key)
            s.retried(
                first, s.submit(s.request(tag, f"  {key} ")), "blanks around the value of a header are no part of it"
            )
            s.one_effect(tag, "one key")
            return
        texts = ("plain", 'with "quotes"', "with \\ and \\\\", "semi;colon=1, comma")
        fitting = filter(s.is_key, (f"{text} {s.session.rand(text)}" for text in texts))
        for text in (None, *fitting):
            tag, key = s.tag(), s.key(text)
            first = s.first(tag, key)
            for spelling in (f"{key};a=1", f"  {key}  ", f'{key};a;b="x"'):
                s.retried(first, s.submit(s.request(tag, spelling)), f"the spelling {spelling} of {key}")
            s.one_effect(tag, f"the spellings of {key}")


@clause("IK-KEY-2")
def test_a_malformed_key_never_leads_to_an_unprotected_execution(bench: Bench) -> None:
    """Two lines, an empty value, and what is no String."""
    with service(bench) as s:
        good, other = s.key(), s.key()
        for value in _malformed(good, s.profile["key_syntax"]):
            tag = s.tag()
            answers = [s.submit(s.request(tag, value)) for _ in range(2)]
            if s.profile["key_syntax"] == "opaque" and value.strip():
                # It may be a key here.
                if s.effects(tag) > 1:
                    s.fail("fail_open", f"the value {value!r} is no key, and was executed each time")
                continue
            s.no_effect(tag, f"the malformed value {value!r}")
            for got in answers:
                s.refused(got, _REFUSED, f"the malformed value {value!r}")
        for lines in ([good, other], [good, good]):
            tag = s.tag()
            got, _ = s.submit(s.request(tag, lines)), s.submit(s.request(tag, lines))
            if s.effects(tag) == 1 and got.accepted:
                # One of the lines guarded it. Another reader takes the other one.
                s.wrong("wrong_reason", f"two lines of the header are one key, and not refused: {got}")
                continue
            s.no_effect(tag, "two lines of the header")
            s.refused(got, _REFUSED, "two lines of the header")


def _malformed(good: str, syntax: str) -> list[str]:
    found = ["", '""' if syntax == "sf" else " "]
    if syntax == "sf":
        found += [good[:-1], good[1:], f"{good}, {good}", f"({good})", good.strip('"'), '"caf\u00e9"', "1", "?1", "1.5"]
        found += [":aGY=:", '%"a"', "@1", '"a\\b"', "token"]
    return found


@clause("IK-KEY-3")
def test_a_request_without_its_required_key_is_refused(bench: Bench) -> None:
    """No header, and an empty one."""
    with service(bench) as s:
        required = [name for name, route in s.routes.items() if route["key"] == "required"]
        s.must_promise(required, "no route requires a key")
        for name in required:
            for key in (None, ""):
                tag = s.tag()
                got = s.submit(s.request(tag, key, route=name))
                what = f"{'no header' if key is None else 'an empty key'} on {name}"
                s.no_effect(tag, what)
                s.refused(got, _REFUSED, what)


@clause("IK-KEY-4")
def test_keys_that_differ_in_one_thing_are_two(bench: Bench) -> None:
    """Case, blanks, Unicode, and the end of a long text."""
    with service(bench) as s:
        if s.profile["key_syntax"] == "uuid":
            key = s.key()
            for other in (key, key[:-1] + ("0" if key[-1] != "0" else "1"), ("0" if key[0] != "0" else "1") + key[1:]):
                tag = s.tag()
                _is_new(s, tag, s.submit(s.request(tag, other)), f"the key {other}")
            return
        stem = s.session.rand("stem")
        pairs = [
            (f"k{stem}", f"K{stem}"),
            (f"{stem} a", f"{stem}  a"),
            (f"{stem}%20x", f"{stem} x"),
            (f"{stem}a", f"{stem}a."),
        ]
        # Equal to who decodes: percent signs, forms, entities, base64. A published rule may leave them out.
        decoded = [(f"{stem}%2Fb", f"{stem}/b"), (f"{stem}%41", f"{stem}A"), (f"{stem}+y", f"{stem} y")]
        decoded += [(f"{stem}&amp;", f"{stem}&"), (f"{stem}==", stem)]
        pairs += decoded
        # Equal as numbers, as UUIDs, and in CRC-32, FNV-1a and the hash of Java.
        digits = f"{stem[:8]}-{stem[8:12]}-4bcd-a123-{stem[:12]}"
        pairs += [(digits, digits.upper())]
        pairs += [(one + stem, two + stem) for one, two in _COLLIDING]
        if s.is_new:
            pairs += [("1-1-1-1-1", "00000001-0001-0001-0001-000000000001"), *_NUMBERS]
        longest = s.longest_key
        ends = [*(end for end in _ENDS if longest is None or end < longest), *([longest - 1] if longest else [])]
        long = stem + "x" * max(ends, default=0)
        pairs += [(f"{long[:end]}a", f"{long[:end]}b") for end in ends if end]
        for left, right in [pair for pair in pairs if all(map(s.is_key, pair))]:
            one, two = s.tag(), s.tag()
            got = s.submit(s.request(one, s.spelt(left)))
            is_long = longest is None and len(left) >= _ENDS[2]
            if (is_long or (left, right) in decoded) and s.means(got, _REFUSED):
                # Without a published limit or rule such a key may be refused.
                s.no_effect(one, f"the key {left[-40:]!r}, which is refused")
                continue
            _is_new(s, one, got, f"the key {left[-40:]!r}")
            got = s.submit(s.request(two, s.spelt(right)))
            if (left, right) in decoded and s.means(got, _REFUSED):
                s.no_effect(two, f"the key {right[-40:]!r}, which is refused")
                continue
            _is_new(s, two, got, f"the key {right[-40:]!r} beside {left[-40:]!r}", s.request(one, s.spelt(right)))


def _is_new(s: Service, tag: str, got: Got, what: str, *alike: Mapping[str, Any]) -> None:
    """A key that was not used before is executed. `alike` have this key, and the payload of a request with another."""
    if got.effect == "prior" or s.is_of_another(tag, got) or s.means(got, ("DUPLICATE",)):
        s.fail("fail_open", f"the request with {what} was answered as if that with another key were it: {got}")
    if not got.accepted:
        for each in alike if s.means(got, ("MISMATCH",)) else ():
            s.may_have(each["tag"], 2)
            again = s.submit(each)
            if again.effect == "prior":
                told = f"was refused as {got.reason}, and with the payload of another key's request it got its answer"
                s.fail("fail_open", f"the request with {what} {told}: {again}")
        s.fail("over_refusal", f"the request with {what} was refused as {got.reason}: {got}", got)
    s.one_effect(tag, f"the request with {what}")


@clause("IK-KEY-4", "IK-KEY-2")
def test_keys_whose_bytes_are_no_utf_8_are_refused_or_two(bench: Bench) -> None:
    """Two keys that differ in such bytes alone."""
    with service(bench) as s:
        s.must_promise(s.profile["key_syntax"] != "uuid", "a key is a UUID, which is ASCII")
        for pair in _NO_UTF8:
            stem, asked = s.session.rand(pair[0]), list[Mapping[str, Any]]()
            for text in [f"{each}{stem}" for each in pair if s.is_key(f"{each}{stem}")]:
                tag = s.tag()
                got = s.submit(s.request(tag, s.spelt(text), latin1=True))
                if s.means(got, (*_REFUSED, "OTHER", "NO_ANSWER")):
                    # A server may take no such header at all.
                    s.no_effect(tag, f"the key {text!r}, which was refused")
                    continue
                if s.profile["key_syntax"] == "sf":
                    s.refused(got, _REFUSED, f"the key {text!r}, which is no String")
                _is_new(s, tag, got, f"the key {text!r}", *({**each, "keys": [text]} for each in asked))
                asked.append(s.request(tag, text, latin1=True))


@clause("IK-KEY-4", "IK-KEY-5")
def test_a_key_beyond_the_published_rule_is_refused_and_never_cut(bench: Bench) -> None:
    """One character more than the longest; for a UUID what is none."""
    with service(bench) as s:
        if s.profile["key_pattern"] is not None:
            texts = ("a b", "a", "", "a'b", "caf%C3%A9 1", "x" * 300, '{"a":1}')
            values = [s.spelt(text) for text in texts if not s.is_key(text) and text]
            s.must_promise(values, "every text that was tried fits the published rule")
        elif s.profile["key_syntax"] == "uuid":
            values = [f"{s.key()}0", s.key()[:-1], "not-a-uuid", s.key().replace("-", "")]
        else:
            s.must_promise(s.profile["max_key_length"], "no longest key is published")
            longest = s.profile["max_key_length"]
            text = (s.session.hex64("long") * (longest // 64 + 2))[: longest + 1]
            tag, key = s.tag(), s.spelt(text[:longest])
            s.retried(s.first(tag, key), s.submit(s.request(tag, key)), f"a key of {longest} characters again")
            s.one_effect(tag, f"a key of {longest} characters")
            values = [s.spelt(text), s.spelt(text * 3)]
        for value in values:
            tag = s.tag()
            answers = [s.submit(s.request(tag, value)) for _ in range(2)]
            s.no_effect(tag, f"the key {value[:20]!r} of {len(value)} characters")
            for got in answers:
                s.refused(got, _REFUSED, f"the key {value[:20]!r} of {len(value)} characters")


@clause("IK-KEY-6")
def test_no_delimiter_makes_two_pairs_of_scope_and_key_one(bench: Bench) -> None:
    """A key that holds what could stand between a scope and a key."""
    with service(bench) as s:
        s.must_promise(s.profile["key_syntax"] != "uuid", "a key is a UUID, which holds no delimiter but its own")
        names = [name for name, route in s.routes.items() if route["key"] != "ignored"]
        # What may stand before a key inside a store: a principal, a route and its path.
        befores = ["a", "b", *(route["path"] for route in s.routes.values()), *names, *s.names.values()]
        # Without a principal in the scope, the key of the other one is the same key.
        asking = ("a", "b") if "b" in s.principals and "principal" in s.profile["scope"] else ("a",)
        for between in (":", "/", "|", " ", ",", "-", "_", "#", "."):
            stem = s.session.rand(between)
            # Where the name of a principal is that of another one and more, this more as well.
            more = [name.partition(f"{other}{between}")[2] for name in s.names.values() for other in s.names.values()]
            known = dict.fromkeys([*befores, *filter(None, more)])
            texts = [stem, *(f"{before}{between}{stem}" for before in known), f"{stem}{between}"]
            asked: list[str] = []
            # A blank at the end of a header is no part of it.
            for text in [text for text in texts if text == text.strip() and s.is_key(text)]:
                for principal in asking:
                    tag = s.tag()
                    got = s.submit(s.request(tag, s.spelt(text), principal=principal))
                    alike = [s.request(each, s.spelt(text), principal=principal) for each in asked]
                    _is_new(s, tag, got, f"the key {text!r} of {principal}", *alike)
                    asked.append(tag)


@clause("IK-SCOPE-3")
def test_a_key_is_no_part_of_the_stores_language(bench: Bench) -> None:
    """Quotes, wildcards, paths and statements: refused, or one key each and no other's."""
    with service(bench) as s:
        kept, known = s.tag(), s.key()
        first = s.first(kept, known)
        for text in _HOSTILE:
            tag, key = s.tag(), s.spelt(text if s.is_new else f"{text}{s.session.rand(text)}")
            got = s.submit(s.request(tag, key))
            if not got.accepted:
                s.no_effect(tag, f"the key {text!r}, which was refused")
                s.refused(got, _REFUSED, f"the key {text!r}")
                continue
            s.retried(got, s.submit(s.request(tag, key)), f"the key {text!r} again")
            s.one_effect(tag, f"the key {text!r}")
        s.retried(first, s.submit(s.request(kept, known)), "the key from before")
        s.one_effect(kept, "the key from before")
