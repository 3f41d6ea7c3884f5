"""Accepts everything and remembers nothing."""

from __future__ import annotations

from honest import Adapter, Json, well_formed


class AcceptAll(Adapter):
    name = "accept-all"

    def call(self, method: str, args: Json) -> Json:
        if method != "put":
            empty: Json = {"state": {"entry": []}, "audit": {"records": []}}
            return {"outcome": "ok", "value": empty[method]} if method in empty else {"outcome": "ok"}
        entry = args if well_formed(args) else {"key": "any", "nonce": "any"}
        return {"outcome": "accepted", "effect": "new", "value": {"entry": entry}}


AcceptAll().run()
