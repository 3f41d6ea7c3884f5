"""Honest, but removes the workdir when the session ends, and leaves a folder there that no user may enter."""

from __future__ import annotations

import shutil

from honest import Adapter, Json


class RemovesWorkdir(Adapter):
    name = "removes-workdir"

    def answer(self, request: Json) -> Json:
        answer = super().answer(request)
        if request["op"] == "close":
            shutil.rmtree(self.workdir, ignore_errors=True)
            locked = self.workdir / "locked"
            if not locked.exists():
                locked.mkdir(parents=True)
                (locked / "file").touch()
                locked.chmod(0)
        return answer


RemovesWorkdir().run()
