"""Sets aside the files of an older run, if they are holdfast's own, before any step of the new run can fail.

A file `NAME` becomes `NAME.previous`; of a folder of Allure results, those of holdfast move into `FOLDER.previous`.
Nothing else is touched. `holdfast verify` does this before it reads its own options, so this module imports nothing
but a little of the standard library.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat

# What follows the name of an older run's file, and of a file that is still being written.
PREVIOUS, PARTIAL = ".previous", ".partial"
# What follows the name of a file of evidence that is compressed, and the first bytes of it.
COMPRESSED, ZSTD = ".zst", b"\x28\xb5\x2f\xfd"
# A canonical header begins so: "adapter" is the first of its members.
_EVIDENCE = b'{"adapter":'
# The root element names holdfast. In older files pytest's plugin wrote the root, and its cases had no class.
_JUNIT = re.compile(
    rb"\A\s*(?:<\?xml[^>]*\?>)?\s*"
    rb'<testsuites [^>]*?name="(?:holdfast"|pytest tests"[^>]*>\s*<testsuite [^>]*?name="'
    rb'(?:holdfast"|pytest"[^>]*>\s*<testcase classname="" name="[^"/]+/))'
)
# How a page begins (reports/html/page.html.j2).
_PAGE = b'<!doctype html>\n<html lang="en">\n<head>\n<meta name="generator" content="holdfast">'
_HEAD_BYTES = 4096
# A block that is compressed, the unit that can be read, has at most 128 KiB; a header stands before it.
_BLOCK_BYTES = 256 * 1024
# An Allure result is some pages of JSON; a larger file is something else.
_MOST_BYTES = 16 * 1024 * 1024
_RESULT = "-result.json"
# Evidence with a line after its footer is not complete, for every reader.
_SPOILT = b'{"type":"superseded"}\n'


class EarlierError(Exception):
    """What an older run left cannot be set aside: the text says what was expected, what came and what to do."""


def is_evidence(path: str | os.PathLike[str]) -> bool:
    """Whether a file of evidence stands at `path`, be it cut off."""
    return (_head(path) or b"").startswith(_EVIDENCE)


def is_drawn(path: str | os.PathLike[str]) -> bool:
    """Whether a JUnit file or a page that holdfast wrote stands at `path`."""
    head = _head(path) or b""
    return _JUNIT.match(head) is not None or head.startswith(_PAGE)


def is_remnant(path: str | os.PathLike[str]) -> bool:
    """Whether a regular file stands at `path` that holds nothing, or less than the first bytes of evidence.

    A run that the disk had no room for may leave it; it can be replaced.
    """
    head = _head(path)
    return head is not None and len(head) < len(_EVIDENCE) and (_EVIDENCE.startswith(head) or ZSTD.startswith(head))


def other_form(path: str | os.PathLike[str]) -> str:
    """The name of the same evidence in the other form: `NAME.zst` for `NAME`, and the reverse."""
    name = os.fspath(path)
    return name.removesuffix(COMPRESSED) if name.endswith(COMPRESSED) else name + COMPRESSED


def set_aside(path: str | os.PathLike[str]) -> None:
    """Rename the evidence, JUnit file or page of an older run at `path`. Raises EarlierError; leaves all else alone.

    A link is followed: it stays, and what it leads to is renamed. So is evidence of the other form, which a reader
    takes where nothing stands at `path`.
    """
    for form in (path, other_form(path)):
        real = os.path.realpath(form)
        if not real.endswith((PREVIOUS, PARTIAL)) and (is_evidence(real) or is_drawn(real)):
            _rename(real)


def withdraw(path: str | os.PathLike[str]) -> None:
    """Rename evidence that stands at `path` and must not, or the link to it. Raises EarlierError."""
    if is_evidence(path):
        _rename(os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)))


def set_results_aside(folder: str | os.PathLike[str]) -> None:
    """Move the Allure results of older runs, with their attachments, out of `folder`. Raises EarlierError.

    Where they cannot be moved (the folder is mounted, or nothing may be made beside it), they are removed: they are
    made from evidence, which stays.
    """
    real = os.path.realpath(folder)
    found = _results(real)
    aside = real + PREVIOUS
    if found and os.path.isdir(aside):
        _remove(aside, _results(aside))
    try:
        if found:
            os.makedirs(aside, exist_ok=True)
        for name in found:
            os.replace(os.path.join(real, name), os.path.join(aside, name))
    except OSError:
        _remove(real, found)


def _remove(folder: str, names: list[str]) -> None:
    try:
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))
    except OSError as error:
        raise EarlierError(
            f"{folder}: expected to set the results of an older run aside, got: {error.strerror}; "
            "remove them, or name another folder"
        ) from error


def _head(path: str | os.PathLike[str]) -> bytes | None:
    """The first bytes of a regular file, decompressed if they can be; None if there is none that can be read."""
    try:
        # A pipe would wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        head = os.read(descriptor, _HEAD_BYTES)
        return _decompressed(head + os.read(descriptor, _BLOCK_BYTES)) if head.startswith(ZSTD) else head
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _decompressed(head: bytes) -> bytes:
    """As many bytes as evidence is known by; nothing if the first block is cut off."""
    import zstandard

    try:
        return zstandard.ZstdDecompressor().stream_reader(head, read_across_frames=True).read(len(_EVIDENCE))
    except zstandard.ZstdError:
        return head


def _rename(real: str) -> None:
    try:
        os.replace(real, _free_name(real))
    except FileNotFoundError:
        # Another run that begins in the same folder was faster.
        return
    except OSError as error:
        if not (is_evidence(real) and _spoil(real)):
            raise EarlierError(
                f"{real}: expected to set an older run aside as {os.path.basename(real)}{PREVIOUS}, "
                f"got: {error.strerror}. It still stands there and does not belong to this run: "
                "remove it, or name another file"
            ) from error


def _free_name(real: str) -> str:
    """`NAME.previous`; with a number before the suffix if something that is not holdfast's own stands there."""
    name, number = real + PREVIOUS, 2
    while os.path.lexists(name) and (os.path.islink(name) or not (is_evidence(name) or is_drawn(name))):
        name, number = f"{real}.{number}{PREVIOUS}", number + 1
    return name


def _spoil(real: str) -> bool:
    """Where nothing can be renamed (a read-only folder, a mounted file): no older run may pass for the new one."""
    try:
        descriptor = os.open(real, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            return os.write(descriptor, _SPOILT) == len(_SPOILT)
        finally:
            os.close(descriptor)
    except OSError:
        return False


def _results(folder: str) -> list[str]:
    """The names of holdfast's own results in `folder` and of their attachments."""
    found = []
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_RESULT))
    except OSError:
        return []
    for name in names:
        attachments = _attachments(os.path.join(folder, name))
        if attachments is not None:
            found += [name, *(one for one in attachments if os.path.isfile(os.path.join(folder, one)))]
    return found


def _attachments(path: str) -> list[str] | None:
    """The names of a result's attachments; None if the result is not holdfast's own."""
    import json

    try:
        if not stat.S_ISREG(os.lstat(path).st_mode) or os.path.getsize(path) > _MOST_BYTES:
            return None
        with open(path, "rb") as file:
            result = json.load(file)
        labels = {(label.get("name"), label.get("value")) for label in result.get("labels", ())}
        # In older results Allure's plugin of pytest named the case after a `#`, and no module before it.
        older = ("framework", "pytest") in labels and re.match(r"#[^/]+/", result.get("fullName", ""))
        if ("framework", "holdfast") not in labels and not older:
            return None
        sources = [one["source"] for one in result.get("attachments", ())]
        return [one for one in sources if one == os.path.basename(one)]
    except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None
