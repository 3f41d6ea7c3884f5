"""Honest, but ends where it is to close a session that was never opened."""

from __future__ import annotations

from honest import Adapter, Json


class CloseNeedsASession(Adapter):
    def answer(self, request: Json) -> Json:
        if request["op"] == "close" and self.database is None:
            raise SystemExit(1)
        return super().answer(request)


CloseNeedsASession().run()
