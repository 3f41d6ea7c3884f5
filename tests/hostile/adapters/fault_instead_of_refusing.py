"""Honest, but where it must refuse it reports an internal error."""

from __future__ import annotations

from honest import Adapter, Json


class FaultInsteadOfRefusing(Adapter):
    name = "fault-instead-of-refusing"

    def refuse(self, reason: str) -> Json:
        self.sql("ROLLBACK")
        return {"outcome": "fault", "detail": "IntegrityError: UNIQUE constraint failed"}


FaultInsteadOfRefusing().run()
