"""Bugs about what is asked: verify mode, profiles, depth, requests and leftovers of earlier calls."""

from __future__ import annotations

import base64
import os
import signal
from dataclasses import replace
from typing import Any

from holdfast.reference_impl.answers import Answer
from holdfast.reference_impl.jcs import numbers
from holdfast.reference_impl.jcs.canonicaliser import Canonicaliser
from holdfast.reference_impl.jcs.mutants.planting import mutant, value
from holdfast.reference_impl.jcs.reader import Reader, defect
from holdfast.reference_impl.jcs.service import MalformedError, Request, Service
from holdfast.reference_impl.jcs.strings import NONCHARACTER
from holdfast.reference_impl.jcs.terms import Profile, Reason, Refusal
from holdfast.reference_impl.mutants.planting import also, part


class Yes(Canonicaliser):
    def compared(self, document: bytes, canonical: bytes) -> Refusal | None:
        return None


class EndsIgnored(Canonicaliser):
    def compared(self, document: bytes, canonical: bytes) -> Refusal | None:
        return super().compared(document.strip(), canonical)


class SameLength(Canonicaliser):
    def compared(self, document: bytes, canonical: bytes) -> Refusal | None:
        # As long as the canonical form, so nothing can be added to it.
        return None if len(document) == len(canonical) else super().compared(document, canonical)


class AsciiCompared(Canonicaliser):
    def compared(self, document: bytes, canonical: bytes) -> Refusal | None:
        return super().compared(document.decode("ascii", "ignore").encode(), canonical)


class UnreadIsYes(Canonicaliser):
    def verify(self, document: bytes) -> Refusal | None:
        canonical = self.canonicalise(document)
        return None if isinstance(canonical, Refusal) else self.compared(document, canonical)


class OneReason(Canonicaliser):
    def verify(self, document: bytes) -> Refusal | None:
        return None if super().verify(document) is None else Refusal(Reason.NOT_CANONICAL, 0)


class FirstProfile(Service):
    def chosen(self, profile: Profile) -> Canonicaliser:
        # Made once, and then it is there.
        kept: Canonicaliser = self.__dict__.setdefault("kept", super().chosen(profile))
        return kept


class Cached(Service):
    def call(self, method: str, args: Any) -> Answer:
        answers: dict[str, Answer] = self.__dict__.setdefault("answers", {})
        key = f"{method} {args.get('document')}"
        if key not in answers:
            answers[key] = super().call(method, args)
        return answers[key]


class CoreOtherwise(Service):
    def read(self, args: Any) -> Request:
        known = {profile.value for profile in Profile}
        profile = args.get("profile")
        return super().read({**args, "profile": profile if profile in known else "core"})


class AnyBase64(Service):
    def read(self, args: Any) -> Request:
        try:
            text = args["document"].rstrip("=").replace("-", "+").replace("_", "/")
            return Request(base64.b64decode(text + "=" * (-len(text) % 4)), Profile(args["profile"]))
        except (KeyError, ValueError, AttributeError) as error:
            raise MalformedError(str(error)) from error


class DepthKills(Reader):
    def refuse_depth(self, level: int, at: int) -> None:
        if level > 5000:
            os.kill(os.getpid(), signal.SIGSEGV)


class DepthIsSyntax(Reader):
    def refuse_depth(self, level: int, at: int) -> None:
        if level > 1000:
            defect(Reason.SYNTAX, at)


class AnyCharacter(Reader):
    def refuse_noncharacter(self, string: str, at: int) -> None:
        pass


class FirstPlaneOnly(Reader):
    def refuse_noncharacter(self, string: str, at: int) -> None:
        if NONCHARACTER.search("".join(character for character in string if character <= "\uffff")):
            super().refuse_noncharacter(string, at)


class ValuesOnly(Reader):
    def name(self, text: str, at: int) -> tuple[str, int]:
        return Reader(self.limits, Profile.CORE).string(text, at)


class AnyPrecision(Reader):
    def refuse_too_precise(self, literal: str, at: int) -> None:
        pass


class ZerosCount(Reader):
    def refuse_too_precise(self, literal: str, at: int) -> None:
        digits = sum(character.isdigit() for character in literal.lower().partition("e")[0])
        if self.profile is Profile.I_JSON_STRICT and digits > self.limits.max_significant_digits:
            defect(Reason.NUMBER_TOO_PRECISE, at)


class Exact(Reader):
    def refuse_too_precise(self, literal: str, at: int) -> None:
        # Sounds right, and refuses the canonical text of 2^68.
        written = numbers.integer_of(literal)
        if self.profile is Profile.I_JSON_STRICT and written is not None and int(float(literal)) != written:
            defect(Reason.NUMBER_TOO_PRECISE, at)
        super().refuse_too_precise(literal, at)


class AnySmallness(Reader):
    def refuse_underflow(self, literal: str, double: float, at: int) -> None:
        pass


class AnyInteger(Reader):
    def refuse_unsafe_integer(self, double: float, at: int) -> None:
        pass


class PositiveOnly(Reader):
    def refuse_unsafe_integer(self, double: float, at: int) -> None:
        if double > 0:
            super().refuse_unsafe_integer(double, at)


class AllLarge(Reader):
    def refuse_unsafe_integer(self, double: float, at: int) -> None:
        if self.profile is Profile.SAFE_INT and abs(double) > self.limits.max_safe_integer:
            defect(Reason.UNSAFE_INTEGER, at)


class AsSpelled(Reader):
    def number(self, text: str, at: int) -> tuple[float, int]:
        literal = text[at : self.number_end(text, at)]
        # What has a point or an exponent is no integer to them.
        if self.profile is Profile.SAFE_INT and numbers.integer_of(literal) is None:
            return Reader(self.limits, Profile.CORE).number(text, at)
        return super().number(text, at)


_UNSAFE = "an unsafe integer is among its documents"

MUTANTS = (
    mutant(
        "verify-says-yes",
        "verify accepts whatever can be canonicalised",
        part(canonicaliser=Yes),
        {"VER-02": "fail_open"},
    ),
    mutant(
        "verify-trims",
        "verify does not look at whitespace around the value",
        part(canonicaliser=EndsIgnored),
        {"VER-02": "fail_open"},
    ),
    mutant("verify-by-length", "verify compares lengths", part(canonicaliser=SameLength), {"VER-02": "fail_open"}),
    mutant(
        "verify-ascii",
        "verify compares ASCII characters only",
        part(canonicaliser=AsciiCompared),
        {"VER-01": "over_refusal"},
        also("canonical bytes beyond ASCII are among its documents", "VER-02 VER-03 IDEM-01"),
    ),
    mutant(
        "unread-is-yes",
        "verify accepts what it cannot read",
        part(canonicaliser=UnreadIsYes),
        {"VER-03": "fail_open"},
        also("verify is asked about what is refused", "PROF-02 PROF-05"),
    ),
    mutant(
        "one-reason",
        "verify has one reason for everything",
        part(canonicaliser=OneReason),
        {"VER-03": "wrong_reason"},
        also("verify is asked about what is refused", "PROF-02 PROF-05"),
    ),
    mutant(
        "first-profile",
        "The profile of the first call holds for the session",
        part(service=FirstProfile),
        {"PURE-01": "fail_open"},
    ),
    mutant(
        "answers-cached",
        "An answer is remembered by its document, whatever the profile",
        part(service=Cached),
        {"PURE-01": "fail_open"},
    ),
    mutant("core-otherwise", "An unknown profile is core", part(service=CoreOtherwise), {"REQ-01": "fail_open"}),
    mutant("any-base64", "Any spelling of the bytes will do", part(service=AnyBase64), {"REQ-01": "fail_open"}),
    mutant("depth-kills", "5,000 levels end the process", part(reader=DepthKills), {"DEPTH-01": "no_verdict"}),
    mutant(
        "depth-is-syntax", "Too deep is called a syntax error", part(reader=DepthIsSyntax), {"DEPTH-01": "over_refusal"}
    ),
    mutant(
        "depth-of-32",
        "Documents deeper than 32 levels are refused",
        value(lambda limits: replace(limits, max_depth=32)),
        {"DEPTH-02": "over_refusal"},
        also("some of its documents are deeper", "IDEM-02"),
    ),
    mutant(
        "any-character",
        "i-json-strict accepts noncharacters",
        part(reader=AnyCharacter),
        {"PROF-02": "fail_open"},
        also("a noncharacter is among its documents", "PURE-01 VER-03"),
    ),
    mutant(
        "first-plane-only",
        "Only noncharacters of the first plane are known",
        part(reader=FirstPlaneOnly),
        {"PROF-02": "fail_open"},
    ),
    mutant(
        "values-only", "Names are not looked at for noncharacters", part(reader=ValuesOnly), {"PROF-02": "fail_open"}
    ),
    mutant(
        "any-precision",
        "i-json-strict accepts any number of digits",
        part(reader=AnyPrecision),
        {"PROF-03": "fail_open"},
    ),
    mutant(
        "one-digit-more",
        "18 significant digits are accepted",
        value(lambda limits: replace(limits, max_significant_digits=18)),
        {"PROF-03": "fail_open"},
    ),
    mutant(
        "zeros-count",
        "Zeros at the ends of a number are significant digits",
        part(reader=ZerosCount),
        {"PROF-03": "over_refusal"},
        also("one of its numbers has many zeros", "PROF-06 IDEM-01 PROF-01 VER-01"),
    ),
    mutant(
        "integers-exact",
        "i-json-strict refuses integers that are no doubles",
        part(reader=Exact),
        {"PROF-06": "over_refusal", "IDEM-01": "over_refusal"},
        also("one of its integers is no double", "PROF-03 VER-01"),
    ),
    mutant(
        "any-smallness", "i-json-strict accepts what becomes zero", part(reader=AnySmallness), {"PROF-04": "fail_open"}
    ),
    mutant(
        "any-integer",
        "safe-int accepts every integer",
        part(reader=AnyInteger),
        {"PROF-05": "fail_open"},
        also(_UNSAFE, "PURE-01 VER-03"),
    ),
    mutant(
        "one-integer-more",
        "2^53 is a safe integer",
        value(lambda limits: replace(limits, max_safe_integer=2**53)),
        {"PROF-05": "fail_open"},
        also(_UNSAFE, "VER-03 PURE-01"),
    ),
    mutant("positive-only", "Negative integers are all safe", part(reader=PositiveOnly), {"PROF-05": "fail_open"}),
    mutant(
        "integers-as-spelled",
        "Only literals without point and exponent are integers",
        part(reader=AsSpelled),
        {"PROF-05": "fail_open"},
    ),
    mutant(
        "all-large-numbers",
        "safe-int refuses every number beyond 2^53",
        part(reader=AllLarge),
        {"PROF-06": "over_refusal"},
        also("a large number with an exponent is among its documents", "PROF-01 PROF-05 IDEM-01"),
    ),
)
