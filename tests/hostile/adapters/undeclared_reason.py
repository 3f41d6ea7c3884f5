"""Refuses where it must, with a reason that the contract does not have."""

from __future__ import annotations

from honest import Adapter, Json


class UndeclaredReason(Adapter):
    name = "undeclared-reason"

    def refuse(self, reason: str) -> Json:
        return {**super().refuse(reason), "reason": "ACCESS_DENIED"}


UndeclaredReason().run()
