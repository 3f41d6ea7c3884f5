"""Where the machine lacks what a process takes, nothing is said of the adapter."""

from __future__ import annotations

import errno
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.conformance.run import artefacts
from holdfast.conformance.run.artefacts import ArtefactError
from tests.hostile.verify import HERE, environment

PROGRAM = """
import subprocess, sys
from holdfast.conformance.cli import main
start = subprocess.Popen.__init__
def without_room(self, command, *more, **options):
    if {program!r} in command:
        raise OSError({number}, "no room")
    start(self, command, *more, **options)
subprocess.Popen.__init__ = without_room
sys.argv = ["holdfast", *{words!r}]
main()
"""
HONEST = str(HERE / "adapters" / "honest.py")


@pytest.mark.parametrize(
    ("number", "status"), [(errno.EMFILE, 20), (errno.EAGAIN, 20), (errno.ENOMEM, 20), (errno.ENOEXEC, 13)]
)
def test_an_adapter_that_the_kit_has_no_room_for_is_no_failure_of_the_adapter(
    number: int, status: int, tmp_path: Path
) -> None:
    words = ["verify", "--contract", "toy", "--", sys.executable, HONEST]
    code = PROGRAM.format(number=number, program=HONEST, words=words)
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=environment(tmp_path),
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_of_an_adapter_is_counted_before_anything_of_it_is_hashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artefacts, "_sha256", lambda path: pytest.fail(f"{path} was hashed"))
    (tmp_path / "large").mkdir()
    with (tmp_path / "large" / "image").open("wb") as image:
        image.truncate(artefacts.MAX_BYTES + 1)
    with pytest.raises(ArtefactError, match="GiB"):
        artefacts.Identity(["./none"], started=datetime.now(UTC), named=[tmp_path / "large"])
