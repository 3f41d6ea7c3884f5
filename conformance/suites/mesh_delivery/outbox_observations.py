"""What a daemon's history observes beside its answers: requests, rows, lists, lines and counters."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import from_base64url
from holdfast.conformance.suites.mesh_delivery.broker_answers import ANSWERS, Said
from holdfast.conformance.suites.mesh_delivery.outbox_model import Args, Fate, Outbox, fingerprint_of
from holdfast.conformance.suites.mesh_delivery.sends import Compared

MEMBER = "a" * 64
CONFIG = {"broker": "{peer}", "member": MEMBER}
_GONE = "cm_daemon_dedupe_history_pruned_total"


class Seen(Compared):
    """All of it of one session."""

    def __init__(self, bench: Bench, session: SuiteSession) -> None:
        self._bench, self._session = bench, session
        # What holds for each worker since it was started: answers without history, and lines that were read.
        self.gone: Counter[int] = Counter()
        self._logged: Counter[int] = Counter()
        # The requests that were read, and the bytes of each row in them and in the store.
        self._received = 0
        self.bodies: dict[str, str] = {}
        self._payloads: dict[str, Any] = {}

    def forget(self, worker: int) -> None:
        """A worker was started again."""
        self.gone[worker] = self._logged[worker] = 0

    def rename(self, method: str, args: Args, answer: Answer) -> None:
        """What is known of a row goes with it to its new id."""
        if method == "requeue" and answer.outcome == "accepted":
            for known in (self.bodies, self._payloads):
                if args["client_message_id"] in known:
                    known[args["new_id"]] = known.pop(args["client_message_id"])

    def requests(self, model: Outbox) -> list[str]:
        """The ids of the requests that came since; each is the one of its row, with the bytes of every attempt."""
        came = self._session.received(self._received)
        self._received += len(came)
        return [self._named(request, model) for request in came]

    def _named(self, request: Mapping[str, Any], model: Outbox) -> str:
        headers, body = request["headers"], request["body"]
        name = unquote(headers.get("client-message-id", ""))
        if name not in model.rows:
            self._differs("fail_open", "the id of a request", "that of a row", name)
        self._must_be(headers.get("mesh-member"), MEMBER, "wrong_reason", "the member of a request")
        kind = headers.get("content-type", "")
        if kind.partition(";")[0].strip().lower() != "application/json":
            self._weigh("wrong_reason", "the Content-Type of a request", "application/json", kind)
        if self.bodies.setdefault(name, body) != body:
            self._differs("fail_open", f"the bytes of {name}", "those of its first attempt", body[:200])
        row = model.rows[name][0]
        with contextlib.suppress(ValueError, KeyError, TypeError):
            sent = json.loads(from_base64url(body))
            if (sent["mesh_id"], fingerprint_of(sent)) == (row.mesh_id, row.fingerprint):
                return name
        self._differs("fail_open", f"the body of {name}", "the send that was taken in", body[:200])
        raise AssertionError

    def log(self, worker: int, told: Sequence[Said], *, dying: bool) -> None:
        """What has to be said aloud, and what must not; not `dying`: no row was too old."""
        records = self._session.observe("daemon_log", {}, worker)["records"]
        levels = Counter(record["level"] for record in records[self._logged[worker] :])
        self._logged[worker] = len(records)
        loud, quiet = levels["WARN"] + levels["ERROR"], sum(said is ANSWERS["retry"] for said in told)
        due = sum(said.fates == (Fate.DEAD,) or said is ANSWERS["gone"] for said in told)
        if loud < due:
            self._weigh("wrong_reason", "the lines at WARN and above of a round", due, loud)
        if levels["INFO"] < quiet:
            self._weigh("wrong_reason", "the lines at INFO of a round", quiet, levels["INFO"])
        if loud and quiet and quiet == len(told) and not dying:
            self._weigh("wrong_reason", "the lines at WARN and above of a round", 0, loud)

    def look(self, model: Outbox) -> None:
        """Hold everything that can be observed against the model."""
        stored = self.stored()
        problem = model.narrow(stored)
        if problem is not None:
            verdict = _verdict_of(model, stored)
            self._bench.fail(verdict, f"the outbox: {problem}", expected="the rows of the model", received=problem)
        for name, row in stored.items():
            if self._payloads.setdefault(name, row["payload"]) != row["payload"]:
                self._differs("fail_open", f"the payload of {name}", self._payloads[name], row["payload"])
        dead = [
            {"client_message_id": name, "last_error": row["last_error"]}
            for name, row in sorted(stored.items())
            if row["status"] == "dead"
        ]
        for worker in range(self._session.workers):
            failed = self._session.observe("failed", {}, worker)["rows"]
            self._must_be(failed, dead, "fail_open" if len(failed) < len(dead) else "wrong_reason", "outbox --failed")
            found = self._session.observe("daemon_counters", {}, worker)["counters"]
            gone = sum(each["value"] for each in found if each["name"] == _GONE)
            self._must_be(gone, self.gone[worker], "wrong_reason", f"{_GONE} of worker {worker}")

    def stored(self) -> dict[str, Mapping[str, Any]]:
        rows = self._session.inspect()["rows"].get("outbox", [])
        found = {str(row["client_message_id"]): row for row in rows}
        if len(found) != len(rows):
            self._differs("fail_open", "the rows of the outbox", "one for each id", len(rows))
        return found


def _verdict_of(model: Outbox, stored: Mapping[str, Mapping[str, Any]]) -> str:
    """A row that is gone is lost, and one that counts as delivered or is there unasked fails open."""
    if model.rows.keys() - stored.keys():
        return "lost_durability"
    if stored.keys() - model.rows.keys():
        return "fail_open"
    done = {name for name, row in stored.items() if row["status"] == "done"}
    return (
        "fail_open" if any(all(row.status != "done" for row in model.rows[name]) for name in done) else "wrong_reason"
    )
