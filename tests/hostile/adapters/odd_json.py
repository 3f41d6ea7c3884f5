"""Answers each put in JSON that readers disagree about, or that breaks them; ARGV[1] says which."""

from __future__ import annotations

import json
import sys

from honest import Adapter, Json

ODD = {
    "deep": "[" * 200_000 + "]" * 200_000,
    "nan": "NaN",
    "infinite": "1e999",
    "surrogate": '"\\ud800"',
    "control": '"\x01"',
    "digits": "9" * 100_000,
}


class OddJson(Adapter):
    name = "odd-json"

    def send(self, message: Json) -> None:
        if message.get("outcome") not in {"accepted", "refused"}:
            super().send(message)
            return
        message.pop("value", None)
        member = "value" if message["outcome"] == "accepted" else "data"
        self.write(json.dumps(message).encode()[:-1] + f',"{member}":{ODD[sys.argv[1]]}}}\n'.encode())


OddJson().run()
