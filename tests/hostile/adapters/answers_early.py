"""Answers the request after each put before it was made: ids can be guessed."""

from __future__ import annotations

import json

from honest import Adapter, Json


class AnswersEarly(Adapter):
    name = "answers-early"

    def send(self, message: Json) -> None:
        lines = [message]
        if message.get("outcome") in {"accepted", "refused"}:
            guessed = str(int(message["id"]) + 1)
            lines.append({"id": guessed, "outcome": "refused", "reason": "DUPLICATE"})
        # At once, so that the second is there before the kit can have asked.
        self.write("".join(json.dumps(line) + "\n" for line in lines).encode())


AnswersEarly().run()
