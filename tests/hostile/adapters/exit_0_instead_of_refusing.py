"""Honest, but where it must refuse it ends in order, with status 0 and no answer."""

from __future__ import annotations

import sys

from honest import Adapter, Json


class ExitInsteadOfRefusing(Adapter):
    name = "exit-0-instead-of-refusing"

    def refuse(self, reason: str) -> Json:
        sys.exit(0)


ExitInsteadOfRefusing().run()
