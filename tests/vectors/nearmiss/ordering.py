"""Near misses that order members wrongly, or do something to names and containers."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from tests.vectors.nearmiss.honest import Honest, Member, Object, RefusalError
from tests.vectors.nearmiss.registry import near_miss


@near_miss("code-point-sort")
class CodePointSort(Honest):
    """Orders names by code points, which is also the order of their UTF-8 bytes."""

    def sort_key(self, member: Member) -> Any:
        return member.name


@near_miss("escaped-text-sort")
class EscapedTextSort(Honest):
    """Orders names as they are written out, escapes included."""

    def sort_key(self, member: Member) -> Any:
        return self.name_bytes(member.name).decode().encode("utf-16-be")


@near_miss("spelt-name-sort")
class SpeltNameSort(Honest):
    """Orders names as the document spells them."""

    def sort_key(self, member: Member) -> Any:
        return member.spelt.encode("utf-16-be")


@near_miss("locale-sort")
class LocaleSort(Honest):
    """Orders names like a dictionary: letters first, accents and case only to tell equals apart."""

    def sort_key(self, member: Member) -> Any:
        plain = "".join(c for c in unicodedata.normalize("NFD", member.name) if not unicodedata.combining(c))
        return plain.casefold(), member.name.swapcase()


@near_miss("integer-keys-first")
class IntegerKeysFirst(Honest):
    """Orders names that are array indices before all others and by value, as objects of JavaScript do."""

    def sort_key(self, member: Member) -> Any:
        if re.fullmatch("0|[1-9][0-9]{0,9}", member.name) and int(member.name) < 2**32 - 1:
            return 0, int(member.name), b""
        return 1, 0, member.name.encode("utf-16-be")


@near_miss("natural-sort")
class NaturalSort(Honest):
    """Orders digits inside names by their value."""

    def sort_key(self, member: Member) -> Any:
        parts = re.split("([0-9]+)", member.name)
        return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


@near_miss("utf16-little-endian-sort")
class LittleEndianSort(Honest):
    """Orders names by their bytes in little-endian UTF-16."""

    def sort_key(self, member: Member) -> Any:
        return member.name.encode("utf-16-le")


@near_miss("signed-unit-sort")
class SignedUnitSort(Honest):
    """Takes code units for signed numbers."""

    def sort_key(self, member: Member) -> Any:
        data = member.name.encode("utf-16-be")
        return [int.from_bytes(data[at : at + 2], "big", signed=True) for at in range(0, len(data), 2)]


@near_miss("length-first-sort")
class LengthFirstSort(Honest):
    """Orders shorter names first, as canonical CBOR once did."""

    def sort_key(self, member: Member) -> Any:
        return len(member.name), member.name.encode("utf-16-be")


@near_miss("nul-ends-names")
class NulEndsNames(Honest):
    """Compares names up to the first NUL, as C does."""

    def sort_key(self, member: Member) -> Any:
        return member.name.partition("\0")[0].encode("utf-16-be")


@near_miss("no-sort")
class NoSort(Honest):
    """Leaves members in the order in which they came."""

    def ordered(self, members: list[Member]) -> list[Member]:
        return members


@near_miss("outer-sort-only")
class OuterSortOnly(Honest):
    """Orders the members of the outermost object only."""

    def write(self, value: Any) -> bytes:
        self.outermost = value.members if isinstance(value, Object) else None
        return super().write(value)

    def ordered(self, members: list[Member]) -> list[Member]:
        return super().ordered(members) if members is self.outermost else members


@near_miss("no-sort-in-arrays")
class NoSortInArrays(Honest):
    """Follows objects into objects, but not into arrays."""

    def write(self, value: Any) -> bytes:
        self.unsorted: set[int] = set()
        left = [(value, False)]
        while left:
            item, within = left.pop()
            if isinstance(item, list):
                left += [(element, True) for element in item]
            elif isinstance(item, Object):
                if within:
                    self.unsorted.add(id(item.members))
                left += [(member.value, within) for member in item.members]
        return super().write(value)

    def ordered(self, members: list[Member]) -> list[Member]:
        return members if id(members) in self.unsorted else super().ordered(members)


@near_miss("array-sort")
class ArraySort(Honest):
    """Orders the elements of arrays too."""

    def elements(self, elements: list[Any]) -> list[Any]:
        if len(elements) < 2:
            return elements
        return sorted(elements, key=lambda element: Honest(self.profile).write(element))


@near_miss("first-duplicate-wins")
class FirstDuplicateWins(Honest):
    """Keeps the first of two members with one name."""

    def add(self, holder: Object, member: Member) -> None:
        if all(other.name != member.name for other in holder.members):
            holder.members.append(member)


@near_miss("last-duplicate-wins")
class LastDuplicateWins(Honest):
    """Keeps the last of two members with one name."""

    def add(self, holder: Object, member: Member) -> None:
        holder.members = [other for other in holder.members if other.name != member.name]
        holder.members.append(member)


@near_miss("duplicates-kept")
class DuplicatesKept(Honest):
    """Writes both members of one name."""

    def add(self, holder: Object, member: Member) -> None:
        holder.members.append(member)


@near_miss("duplicates-as-spelt")
class DuplicatesAsSpelt(Honest):
    """Compares names as the document spells them."""

    def add(self, holder: Object, member: Member) -> None:
        if any(other.spelt == member.spelt for other in holder.members):
            raise RefusalError("DUPLICATE_NAME")
        holder.members.append(member)


@near_miss("duplicates-next-to-each-other")
class DuplicatesNeighbours(Honest):
    """Compares a name with the one before it only."""

    def add(self, holder: Object, member: Member) -> None:
        if holder.members and holder.members[-1].name == member.name:
            raise RefusalError("DUPLICATE_NAME")
        holder.members.append(member)


@near_miss("equal-duplicates-allowed")
class EqualDuplicatesAllowed(Honest):
    """Drops a second member that has the value of the first."""

    def add(self, holder: Object, member: Member) -> None:
        for other in holder.members:
            if other.name == member.name and self._text(other.value) == self._text(member.value):
                return
        super().add(holder, member)

    def _text(self, value: Any) -> bytes:
        return Honest(self.profile).write(value)


@near_miss("outer-duplicates-only")
class OuterDuplicatesOnly(Honest):
    """Looks for duplicate names in the outermost object only."""

    def begin(self, text: str, at: int, open_: list[Any]) -> tuple[Any, int]:
        self.depth = len(open_)
        return super().begin(text, at, open_)

    def put(self, text: str, at: int, open_: list[Any], value: Any) -> tuple[Any, int]:
        self.depth = len(open_)
        return super().put(text, at, open_, value)

    def add(self, holder: Object, member: Member) -> None:
        if self.depth == 1:
            super().add(holder, member)
        elif all(other.name != member.name for other in holder.members):
            holder.members.append(member)


@near_miss("case-insensitive-names")
class CaseInsensitiveNames(Honest):
    """Takes names that differ in case for one name."""

    def add(self, holder: Object, member: Member) -> None:
        if any(other.name.casefold() == member.name.casefold() for other in holder.members):
            raise RefusalError("DUPLICATE_NAME")
        holder.members.append(member)


@near_miss("names-across-objects")
class NamesAcrossObjects(Honest):
    """Remembers the names of the whole document, not of each object."""

    def read(self, text: str) -> Any:
        self.seen: set[str] = set()
        return super().read(text)

    def add(self, holder: Object, member: Member) -> None:
        if member.name in self.seen:
            raise RefusalError("DUPLICATE_NAME")
        self.seen.add(member.name)
        holder.members.append(member)


@near_miss("proto-dropped")
class ProtoDropped(Honest):
    """Sets a prototype where a member is called __proto__, so that the member is gone."""

    def add(self, holder: Object, member: Member) -> None:
        if member.name != "__proto__":
            super().add(holder, member)


@near_miss("to-json-hook")
class ToJsonHook(Honest):
    """Replaces an object that has a member toJSON by that member."""

    def write(self, value: Any) -> bytes:
        if isinstance(value, Object):
            for member in value.members:
                if member.name == "toJSON":
                    return super().write(member.value)
        return super().write(value)


@near_miss("null-members-dropped")
class NullMembersDropped(Honest):
    """Drops members whose value is null."""

    def ordered(self, members: list[Member]) -> list[Member]:
        return [member for member in super().ordered(members) if member.value is not None]


@near_miss("empty-members-dropped")
class EmptyMembersDropped(Honest):
    """Drops members with an empty value: an empty array, an empty object, an empty string."""

    def ordered(self, members: list[Member]) -> list[Member]:
        return [member for member in super().ordered(members) if not self._empty(member.value)]

    def _empty(self, value: Any) -> bool:
        return value in ("", []) or (isinstance(value, Object) and not value.members)


@near_miss("depth-crash")
class DepthCrash(Honest):
    """Follows the nesting by calling itself, and runs out of stack."""

    def begin(self, text: str, at: int, open_: list[Any]) -> tuple[Any, int]:
        if len(open_) > 900:
            raise RecursionError("maximum recursion depth exceeded")
        return super().begin(text, at, open_)


@near_miss("shallow")
class Shallow(Honest):
    """Refuses what is nested deeper than 32 levels."""

    def begin(self, text: str, at: int, open_: list[Any]) -> tuple[Any, int]:
        if len(open_) > 32:
            raise RefusalError("DEPTH_EXCEEDED")
        return super().begin(text, at, open_)
