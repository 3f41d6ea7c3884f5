"""What the fixture `holdfast` gives: an adapter or a store that is a class in Python, in a test (docs/python.md)."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import pytest

from holdfast.interface import CrashOptions, CrashResult, VerifyOptions, VerifyResult, crash, verify


@dataclass(frozen=True, slots=True)
class Holdfast:
    """`verify` and `crash` of holdfast, which fail the test with their findings. What they write stands in `folder`."""

    folder: Path

    def verify(
        self, contract: str, adapter: Sequence[str] | type[Any], **options: Unpack[VerifyOptions]
    ) -> VerifyResult:
        """As `holdfast.verify`. The test fails unless each case that is asked for conforms."""
        __tracebackhide__ = True
        options.setdefault("evidence", self._place() / "run.jsonl.zst")
        result = verify(contract, adapter, **options)
        return result if result.conforms else pytest.fail(str(result))

    def crash(self, store: Sequence[str] | type[Any], **options: Unpack[CrashOptions]) -> CrashResult:
        """As `holdfast.crash`. The test fails unless every layer that is asked for is a pass."""
        __tracebackhide__ = True
        options.setdefault("out", self._place())
        result = crash(store, **options)
        return result if result else pytest.fail(str(result))

    def _place(self) -> Path:
        return Path(tempfile.mkdtemp(prefix="holdfast-", dir=self.folder))
