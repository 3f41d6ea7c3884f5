"""Refuses where it must, with a reason of the contract that is not the due one."""

from __future__ import annotations

from honest import Adapter, Json

SWAPPED = {"DUPLICATE": "NONCE_CONSUMED", "NONCE_CONSUMED": "DUPLICATE", "REQUEST_MALFORMED": "DUPLICATE"}


class WrongReason(Adapter):
    name = "wrong-reason"

    def refuse(self, reason: str) -> Json:
        return super().refuse(SWAPPED[reason])


WrongReason().run()
