"""Says in hello, in order, that it has no failpoints; honest in everything else."""

from __future__ import annotations

from honest import Adapter, Json


class ClaimsLittle(Adapter):
    name = "claims-little"

    def hello(self, request: Json) -> Json:
        said = super().hello(request)
        said["claims"][0]["not_claimed"] = {"hold_at": "no stop points in production builds"}
        return said

    def call(self, method: str, args: Json) -> Json:
        if method == "hold_at":
            return {"outcome": "unsupported", "capability": "hold_at"}
        return super().call(method, args)


ClaimsLittle().run()
