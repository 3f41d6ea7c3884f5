"""Refuses correctly, and leaves no record of it."""

from __future__ import annotations

from honest import Adapter, Json


class NoAudit(Adapter):
    name = "no-audit"

    def refuse(self, reason: str) -> Json:
        self.sql("ROLLBACK")
        return {"outcome": "refused", "reason": reason}


NoAudit().run()
