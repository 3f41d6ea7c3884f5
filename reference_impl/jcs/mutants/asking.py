"""Bugs about what is asked: verify mode, profiles, depth, requests and leftovers of earlier calls."""

from __future__ import annotations

import base64
import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.reference_impl.answers import Answer
from holdfast.reference_impl.jcs import numbers
from holdfast.reference_impl.jcs.canonicaliser import Canonicaliser
from holdfast.reference_impl.jcs.reader import Reader, defect
from holdfast.reference_impl.jcs.service import MalformedError, Request, Service
from holdfast.reference_impl.jcs.strings import NONCHARACTER
from holdfast.reference_impl.jcs.terms import Profile, Reason, Refusal
from holdfast.reference_impl.planting import Change, part, value


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


class FurtherDropped(Service):
    def read(self, args: Any) -> Request:
        return super().read({name: part for name, part in args.items() if name in ("document", "profile")})


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
        # It refuses the canonical text of 2^68.
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
        # A number with a point or an exponent is no integer for them.
        if self.profile is Profile.SAFE_INT and numbers.integer_of(literal) is None:
            return Reader(self.limits, Profile.CORE).number(text, at)
        return super().number(text, at)


BUGS: Mapping[str, Change] = {
    "verify-says-yes": part(canonicaliser=Yes),
    "verify-trims": part(canonicaliser=EndsIgnored),
    "verify-by-length": part(canonicaliser=SameLength),
    "verify-ascii": part(canonicaliser=AsciiCompared),
    "unread-is-yes": part(canonicaliser=UnreadIsYes),
    "one-reason": part(canonicaliser=OneReason),
    "first-profile": part(service=FirstProfile),
    "answers-cached": part(service=Cached),
    "core-otherwise": part(service=CoreOtherwise),
    "further-arguments-dropped": part(service=FurtherDropped),
    "any-base64": part(service=AnyBase64),
    "depth-kills": part(reader=DepthKills),
    "depth-is-syntax": part(reader=DepthIsSyntax),
    "depth-of-32": value(lambda limits: replace(limits, max_depth=32)),
    "any-character": part(reader=AnyCharacter),
    "first-plane-only": part(reader=FirstPlaneOnly),
    "values-only": part(reader=ValuesOnly),
    "any-precision": part(reader=AnyPrecision),
    "one-digit-more": value(lambda limits: replace(limits, max_significant_digits=18)),
    "zeros-count": part(reader=ZerosCount),
    "integers-exact": part(reader=Exact),
    "any-smallness": part(reader=AnySmallness),
    "any-integer": part(reader=AnyInteger),
    "one-integer-more": value(lambda limits: replace(limits, max_safe_integer=2**53)),
    "positive-only": part(reader=PositiveOnly),
    "integers-as-spelled": part(reader=AsSpelled),
    "all-large-numbers": part(reader=AllLarge),
}
