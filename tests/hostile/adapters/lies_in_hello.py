"""Honest, but lies in hello about the part that ARGV[1] names."""

from __future__ import annotations

import sys

from honest import Adapter, Json


class LiesInHello(Adapter):
    name = "lies-in-hello"

    def hello(self, request: Json) -> Json:
        said = super().hello(request)
        if sys.argv[1] == "challenge":
            said["challenge"] = "0" * 32
        elif sys.argv[1] == "protocol":
            said["protocol"] = 2
        elif sys.argv[1] == "version":
            said["claims"][0]["version"] = "9.9.9"
        elif sys.argv[1] == "contract":
            said["claims"][0]["contract"] = "another"
        elif sys.argv[1] == "nothing":
            said["claims"] = []
        else:
            raise SystemExit(f"no such lie: {sys.argv[1]}")
        return said


LiesInHello().run()
