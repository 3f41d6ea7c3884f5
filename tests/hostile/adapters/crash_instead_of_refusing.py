"""Honest, but where it must refuse it crashes: a crash must not be read as a refusal."""

from __future__ import annotations

import os

from honest import Adapter, Json


class CrashInsteadOfRefusing(Adapter):
    name = "crash-instead-of-refusing"

    def refuse(self, reason: str) -> Json:
        os._exit(3)


CrashInsteadOfRefusing().run()
