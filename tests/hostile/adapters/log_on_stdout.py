"""Honest, but writes a log line to standard output before each put."""

from __future__ import annotations

from honest import Adapter, Json


class LogOnStdout(Adapter):
    name = "log-on-stdout"

    def put(self, args: Json) -> Json:
        self.write(b"INFO put called\n")
        return super().put(args)


LogOnStdout().run()
