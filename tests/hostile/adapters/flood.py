"""Answers a put with lines without end."""

from __future__ import annotations

from honest import Adapter, Json


class Flood(Adapter):
    name = "flood"

    def put(self, args: Json) -> Json:
        while True:
            self.write(b'{"id":"0","outcome":"ok"}\n' * 10_000)


Flood().run()
