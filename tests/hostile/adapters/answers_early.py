"""Answers the request after each put before it was made: ids can be guessed."""

from __future__ import annotations

from honest import Adapter, Json


class AnswersEarly(Adapter):
    name = "answers-early"

    def send(self, message: Json) -> None:
        super().send(message)
        if message.get("outcome") in {"accepted", "refused"}:
            guessed = str(int(message["id"]) + 1)
            super().send({"id": guessed, "outcome": "refused", "reason": "DUPLICATE"})


AnswersEarly().run()
