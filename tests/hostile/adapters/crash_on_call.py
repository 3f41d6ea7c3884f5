"""Dies in every put, with a traceback on standard error."""

from __future__ import annotations

from honest import Adapter, Json


class CrashOnCall(Adapter):
    name = "crash-on-call"

    def put(self, args: Json) -> Json:
        raise RuntimeError("the store is on fire")


CrashOnCall().run()
