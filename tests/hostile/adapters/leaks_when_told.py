"""Refuses correctly, and leaks all the same if its environment and its launcher's config both say so."""

from __future__ import annotations

import os
import uuid

from honest import Adapter, Json


class LeaksWhenTold(Adapter):
    name = "leaks-when-told"
    leaky = False

    def open(self, request: Json) -> None:
        self.leaky = request["config"].get("leaks") == "a lot" and os.environ.get("LEAKS") == "yes"
        super().open(request)

    def refuse(self, reason: str) -> Json:
        if self.leaky:
            self.insert({"key": f"leak-{uuid.uuid4()}", "nonce": f"leak-{uuid.uuid4()}"})
        return super().refuse(reason)


LeaksWhenTold().run()
