"""Honest, but where it must refuse it says nothing."""

from __future__ import annotations

import time

from honest import Adapter, Json


class HangInsteadOfRefusing(Adapter):
    name = "hang-instead-of-refusing"

    def refuse(self, reason: str) -> Json:
        time.sleep(3600)
        raise AssertionError


HangInsteadOfRefusing().run()
