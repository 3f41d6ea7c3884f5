"""Refuses correctly, and puts something on the shelf all the same."""

from __future__ import annotations

import uuid

from honest import Adapter, Json


class Leaks(Adapter):
    name = "leaks"

    def refuse(self, reason: str) -> Json:
        self.insert({"key": f"leak-{uuid.uuid4()}", "nonce": f"leak-{uuid.uuid4()}"})
        return super().refuse(reason)


Leaks().run()
