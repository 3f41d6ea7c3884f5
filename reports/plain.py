"""Makes foreign text safe for an output: it cannot add a line, move the cursor or send a command to a CI server.

`plain` is for values: names, details, paths, logs of an adapter. `disarmed` is for finished output. `bytes_as_text` and
`difference` are for byte strings.
"""

from __future__ import annotations

import re

# C0 and C1 controls, the line breaks among them, and the marks that turn the direction of text: a value must not be
# able to move the cursor, hide a line, or begin a line that resembles one of the kit. A tab does nothing.
_TRICKS = {
    code: {0x0A: "\\n", 0x0D: "\\r"}.get(code) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
    for code in (
        *(code for code in range(0x20) if code != 0x09),
        *range(0x7F, 0xA0),
        *(0x061C, 0x200E, 0x200F, 0x2028, 0x2029),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
    )
}

# The line ends that at least one reader of logs knows.
_BREAKS = "\\n\\r\\x0b\\x0c\\x1c-\\x1e\\x85\\u2028\\u2029"

# Text that CI servers take for a command at each place of a line: `##[…]` (GitHub, Azure), `##vso[…]`
# (Azure), `##teamcity[…]`.
_ANYWHERE = r"##\w*\["
# And what they take at the beginning of a line, after blanks and colours: `::error …` (GitHub), and the headings that
# Buildkite folds a log by. Sections of GitLab need a carriage return and an escape, which `plain` writes out.
_FIRST = rf"(?:^|(?<=[{_BREAKS}]))(?:[^\S{_BREAKS}]|\x1b\[[0-9;]*m)*(?P<first>::|(?:---|\+\+\+|~~~|\^\^\^)(?=\s|$))"
_COMMAND = re.compile(f"{_ANYWHERE}|{_FIRST}")

# Of a line that is not finished, so much decides what the text after it means.
_REMEMBERED = 200


# Of two byte strings that part, so many characters are shown from there on.
_PARTED = 24


def cut(text: str, most: int) -> str:
    """The first `most` characters of a text, with a mark if there are more."""
    return text if len(text) <= most else text[:most] + "…"


def bytes_as_text(data: bytes, *, most: int) -> str:
    """Bytes as text of at most about `most` characters; not printable ASCII is `<U+2028>`, no UTF-8 is `<FF>`."""
    text = data[:most].decode("utf-8", "surrogateescape")
    bad = {one: f"<{ord(one) & 0xFF:02X}>" for one in text if "\udc80" <= one <= "\udcff"}
    kept = "".join(one if " " <= one <= "~" else bad.get(one, f"<U+{ord(one):04X}>") for one in text)
    return kept + (f"… ({len(data)} bytes)" if len(data) > most else "")


def difference(due: bytes, came: bytes) -> str:
    """Where two byte strings part, and what stands there in each; empty if they are the same."""
    if due == came:
        return ""
    least = min(len(due), len(came))
    at = next((place for place in range(least) if due[place] != came[place]), least)
    # Not in the middle of a character.
    while at and any(part[at : at + 1] and part[at] & 0xC0 == 0x80 for part in (due, came)):
        at -= 1
    there = [bytes_as_text(part[at : at + _PARTED], most=_PARTED) or "its end" for part in (due, came)]
    order = "the same bytes in another order; " if sorted(due) == sorted(came) else ""
    return f"{order}they part at byte {at}: {there[0]} is due, {there[1]} came"


def plain(text: str) -> str:
    """A value as part of one line: line breaks and other control characters are written out."""
    return text.translate(_TRICKS)


def disarmed(text: str, *, line: str = "") -> str:
    """Output in which nothing is a command to a CI server: the first character of each command is written as `\\x…`.

    `line` is what stands already on the line that `text` goes on with.
    """
    shown = ""
    done = 0
    for found in _COMMAND.finditer(line + text):
        first = found.start("first")
        at = max((found.start() if first < 0 else first) - len(line), 0)
        # A command that `line` alone is made of stands there already.
        if found.end() > len(line) and at < len(text) and not text[at].isspace() and at >= done:
            shown += text[done:at] + f"\\x{ord(text[at]):02x}"
            done = at + 1
    return shown + text[done:]


def line_after(text: str, *, line: str = "") -> str:
    """What stands on the last line of `line` and `text`, as far as it decides what comes next."""
    last = re.split(f"[{_BREAKS}]", line + text)[-1]
    # No blank: what is cut off was not blank either, or the rest could not be this long.
    return last if len(last) <= _REMEMBERED else "…" + last[-_REMEMBERED:]
