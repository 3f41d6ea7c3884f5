"""Suite tests of calyx-replay played in this process, with mailboxes in place of workers."""

from __future__ import annotations

import contextlib
import gc
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.cases.record import Judgement, Record
from holdfast.conformance.cases.session import Action
from holdfast.conformance.run.plan import suite_case_id, suite_tests
from holdfast.conformance.steps.stores import INSERT
from holdfast.reference_impl.calyx_replay import operate, service
from holdfast.reference_impl.calyx_replay.entry import CalyxReplay
from holdfast.reference_impl.calyx_replay.service import Service
from holdfast.servers.serving import Launched
from holdfast.specs import load_contract
from tests.harness.sessions import Sessions, held
from tests.harness.suite_play import bench_on, judged

CONTRACT = "calyx-replay"


def here(words: Sequence[str]) -> dict[str, Any]:
    """The operator's command line, run in this process."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        status = operate.main(words[1:])
    # The connections of a program end with it. Those of this one would stay until the collector finds them.
    gc.collect()
    return {"status": status, "output": printed.getvalue()}


class Mailboxes(Sessions):
    """A driver whose workers are mailboxes."""

    def execute(self, action: Action) -> Sequence[Record]:
        """One action."""
        if action.act is INSERT:
            # A look of the harness gave up the locks of this process on the store, and the row would cost the log.
            for session in self.sessions.values():
                cast(Service, session)._parts.store.close()
        return super().execute(action)

    def answered(self, worker: int, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to a request; what is to be held is held."""
        if request.get("method") == "hold_at":
            cast(Any, self.sessions[worker])._failpoints.hold = held
        return super().answered(worker, request)


def played(test: str | Callable[[Bench], None], template: Launched, seed: str, **parts: Any) -> tuple[Judgement, Bench]:
    """What a suite test says of the reference, and the bench. `parts` are put in place of those of the reference."""
    function = {each.__name__: each for each, _ in suite_tests(CONTRACT)}[test] if isinstance(test, str) else test
    mailboxes = lambda _: Mailboxes(CalyxReplay(), template.ready.config)  # noqa: E731
    bench = bench_on(load_contract(CONTRACT), suite_case_id(CONTRACT, function.__name__), mailboxes, seed)
    with pytest.MonkeyPatch.context() as patched:
        for name, part in {"commanded": here, **parts}.items():
            patched.setattr(service, name, part)
        return judged(bench, function), bench
