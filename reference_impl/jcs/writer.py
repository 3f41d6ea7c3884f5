"""Writing a value in canonical form. `rfc8785` writes numbers and strings; the structure is walked here, iteratively.

That package recurses, and it refuses integers beyond 2^53; here every number is a double already, and core writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import rfc8785

from holdfast.reference_impl.jcs import numbers

Value: TypeAlias = Any
# A container half written: the elements or the names that are left, and for an object the members by their names.
_Open: TypeAlias = tuple[Iterator[Value], dict[str, Value] | None]


_END: Value = object()


class Writer:
    """Writes values that a `Reader` has made."""

    def write(self, value: Value) -> bytes:
        """The canonical bytes of `value` (RFC 8785 section 3.2)."""
        return self.encode("".join(self.pieces(value)))

    def encode(self, text: str) -> bytes:
        """RFC 8785 section 3.2.4."""
        return text.encode("utf-8")

    def pieces(self, value: Value) -> Iterator[str]:
        """The text of `value` piece by piece. Containers under way are on a stack of our own."""
        under_way: list[_Open] = []
        while True:
            separator = ","
            if isinstance(value, list):
                yield "["
                under_way.append((iter(self.elements(value)), None))
                separator = ""
            elif isinstance(value, dict):
                yield "{"
                under_way.append((iter(self.ordered(list(value))), value))
                separator = ""
            else:
                yield self.scalar(value)
            while under_way:
                left, members = under_way[-1]
                following = next(left, _END)
                if following is _END:
                    yield "]" if members is None else "}"
                    under_way.pop()
                    separator = ","
                    continue
                if members is None:
                    yield separator
                    value = following
                else:
                    yield f"{separator}{self.string(following)}:"
                    value = members[following]
                break
            else:
                return

    def elements(self, array: list[Value]) -> Sequence[Value]:
        """The elements in their order (RFC 8785 section 3.2.3)."""
        return array

    def ordered(self, names: list[str]) -> Sequence[str]:
        """Names by their UTF-16 code units (RFC 8785 section 3.2.3); big-endian bytes compare like the units."""
        return sorted(names, key=lambda name: name.encode("utf-16-be"))

    def scalar(self, value: Value) -> str:
        """A string, a number or a literal."""
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, float):
            return self.number(value)
        return self.literal(value)

    def string(self, string: str) -> str:
        """A string or a name in quotation marks (RFC 8785 section 3.2.2.2)."""
        return rfc8785.dumps(string).decode("utf-8")

    def number(self, double: float) -> str:
        """A finite double (RFC 8785 section 3.2.2.3)."""
        return numbers.text_of(double)

    def literal(self, value: bool | None) -> str:  # noqa: FBT001 - it is the value that is written
        """RFC 8785 section 3.2.2.1."""
        return rfc8785.dumps(value).decode("ascii")
