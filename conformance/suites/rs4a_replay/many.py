"""Many keys of a history: registered by all workers at once, or put into the store as rows, which takes less time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from holdfast.conformance.cases.values import shift
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.rs4a_replay.beside import Beside
from holdfast.conformance.suites.rs4a_replay.nonces import bits_of
from holdfast.conformance.suites.rs4a_replay.requests import principal
from holdfast.conformance.suites.rs4a_replay.steps import Step
from holdfast.conformance.suites.rs4a_replay.world import Call, Effect, keys_of
from holdfast.conformance.suites.session import SuiteSession

# A nonce of the shortest form that methods.yaml allows has 64. A letter that did not come by chance takes a little off.
_LEAST_BITS = 60
# Of fewer nonces the letters of each place say little.
_ASSESSED = 500


class Many:
    """Makes many keys in one session, with the model beside it. `request` is the submission of a key."""

    def __init__(
        self, bench: Bench, session: SuiteSession, beside: Beside, request: Callable[..., dict[str, Any]]
    ) -> None:
        self._bench, self._session, self._beside, self._request = bench, session, beside, request

    def register(self, step: Step) -> None:
        """As many new keys from `step.key` on, each with a nonce of its own, by all workers at once."""
        workers = range(self._session.workers)
        longest_s = self._bench.contract.parameters["nonce_window_seconds"].value
        for number in range(0, step.number, len(workers)):
            now = self._session.now
            window = {"not_before": now, "not_after": shift(now, f"+{longest_s}s")}
            issued = {"binding": {"principal": principal(self._session)}, "window": window}
            self._at_once([Call("issue_nonce", issued, now) for _ in workers])
            keys = [step.key + number + worker for worker in workers]
            pairs = zip(keys, self._beside.nonces[-len(workers) :], strict=True)
            self._at_once([Call("register", self._request(key, nonce=nonce), now) for key, nonce in pairs])
        bits = bits_of(self._beside.nonces)
        if len(self._beside.nonces) >= _ASSESSED and bits < _LEAST_BITS:
            due = f"at least {_LEAST_BITS} bits that differ from nonce to nonce"
            self._beside.differs("fail_open", due, f"{bits:.0f} bits in {len(self._beside.nonces)} nonces")

    def _at_once(self, calls: Sequence[Call]) -> None:
        """One call at each worker, none of which minds the others."""
        handles = [self._session.start(call.method, call.args, worker) for worker, call in enumerate(calls)]
        for call, handle in zip(calls, handles, strict=True):
            self._beside.finish(call, handle)

    def insert(self, step: Step) -> None:
        """Rows of as many other keys. A store that takes none gets registrations."""
        made: dict[str, Effect] = {}
        for number in range(step.number if self._beside.has("raw_insert") else 0):
            row = self._row(step.key + number)
            args = {"relation": "registration", "row": row}
            if not self._session.provoke("raw_insert", args, number % self._session.workers)["inserted"]:
                break
            made[row["logical_request_key"]] = Effect(row, id=row["decision_id"])
        # An implementation may keep only what has consumed a nonce.
        self._beside.narrow(
            lambda world: replace(world, effects={**world.effects, **made}, half=world.half | made.keys())
        )
        self.register(replace(step, key=step.key + len(made), number=step.number - len(made)))

    def _row(self, key: int) -> dict[str, Any]:
        args = self._request(key, nonce=f"never-issued-{key}")
        columns = self._bench.contract.relations["registration"].columns
        row = {name: text for name, text in args["request"].items() if name in columns}
        return {**row, **keys_of(args), "decision_id": f"row-{key}", "inert": True, "committed_at": self._session.now}
