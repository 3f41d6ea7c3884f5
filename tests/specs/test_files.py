"""Files from other sources are read without a wait, and never without a limit."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from holdfast.specs.files import read_regular


def test_a_regular_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.write_bytes(b"0123456789")
    assert read_regular(path, limit=10) == b"0123456789"
    link = tmp_path / "link"
    link.symlink_to(path)
    assert read_regular(link, limit=10) == b"0123456789"


@pytest.mark.parametrize(
    "kind", ["a pipe", "a folder", "a device", "a socket", "too large", "nothing", "a pipe behind a link"]
)
def test_anything_else_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it"
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    elif kind == "a device":
        path = Path("/dev/zero")
    elif kind == "a socket":
        # The name of a socket is short on any system.
        server = socket.socket(socket.AF_UNIX)
        path = Path(os.path.relpath(path))
        server.bind(str(path))
        server.close()
    elif kind == "too large":
        path.write_bytes(b"01234567890")
    elif kind == "a pipe behind a link":
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to(tmp_path / "pipe")
    with pytest.raises(OSError, match=r".") as caught:
        read_regular(path, limit=10)
    assert caught.value.strerror
