"""The adapters and services of the tests that are no reference: sound ones in other styles, and broken ones.

`bench.teeth` runs each of them and compares its verdicts with those that are frozen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.test_adapters import SCENARIOS
from tests.hostile.verify import TOY, temp_folder, verify
from tests.idempotency_key import test_function_guard, test_shapes
from tests.idempotency_key.shapes import Make
from tests.mesh_delivery import test_foreign
from tests.wires import test_service

_HERE = Path(__file__).resolve().parent
_SEED = "foreign"
# The whole of a contract runs against a sound one, in seconds; on a busy machine this long.
_LIMIT_S = 900.0


@dataclass(frozen=True, slots=True)
class Foreign:
    """One of them, `sound` or not. Without `cases` the whole contract is run.

    `replaced` is what stands in its last word, a file, and what stands there instead; `shape` is one of this process.
    """

    name: str
    contract: str
    sound: bool
    command: Sequence[str] = ()
    cases: Sequence[str] = ()
    options: Sequence[str] = ()
    replaced: tuple[str, str] = ("", "")
    specs: Path = TOY
    shape: Make | None = None

    def verdicts(self) -> dict[str, str]:
        """What each case says of it. Raises AssertionError if the run leaves something, OSError, TimeoutExpired."""
        if self.shape is not None:
            of_shape = test_shapes.judged_all if not self.cases else self._judged
            return of_shape(self.shape)
        with temp_folder() as folder:
            options = ["--seed", _SEED, *self.options, *(word for case in self.cases for word in ("--case", case))]
            command = [*self.command]
            if self.name.startswith("service"):
                options += ["--service", str(test_service.file_of(folder, self.replaced[1]))]
            elif self.replaced[0]:
                source = Path(command[-1])
                text = source.read_text(encoding="utf-8")
                command[-1] = str(folder / source.name)
                Path(command[-1]).write_text(text.replace(*self.replaced), encoding="utf-8")
            done = verify(
                command, options=options, cwd=folder, contract=self.contract, specs=self.specs, limit=_LIMIT_S
            )
        return {case: verdict.partition(":")[0] for case, verdict in done.verdicts.items()}

    def _judged(self, make: Make) -> dict[str, str]:
        return {test: test_shapes.judged(test, make) for test in self.cases}


def _foreign() -> Iterable[Foreign]:
    mesh = ("node", str(test_foreign.FOREIGN))
    yield Foreign("mesh in JavaScript", "mesh-delivery", True, mesh)
    for number, (case, before, after, _) in enumerate(test_foreign.CHANGED, 1):
        name = f"mesh in JavaScript, changed {number}"
        yield Foreign(name, "mesh-delivery", False, mesh, (case,), replaced=(before, after))
    for order in ("utf-16", "code-points"):
        small = (sys.executable, str(_HERE / "jcs" / "small_canonicaliser.py"), order)
        yield Foreign(f"jcs by {order}", "jcs", order == "utf-16", small)
    guard = (sys.executable, str(test_function_guard.ADAPTER))
    yield Foreign("function", "idempotency-key", True, (*guard, ""), test_function_guard.KEPT)
    for bug, case, _ in test_function_guard.BUGS:
        yield Foreign(f"function {bug}", "idempotency-key", False, (*guard, bug), (case,))
    yield Foreign("service", "idempotency-key", True, (), test_service.KEPT)
    for bug, case in test_service.BUGS.items():
        yield Foreign(f"service {bug}", "idempotency-key", False, (), (case,), replaced=("BUG", bug))
    for name, make in test_shapes.SOUND.items():
        yield Foreign(f"shape {name}", "idempotency-key", True, shape=make)
    for name, (make, test) in test_shapes.BROKEN.items():
        yield Foreign(f"shape {name}", "idempotency-key", False, cases=(test,), shape=make)
    for flaw in ("", "stores nothing", "leaks", "empty", "foreign", "folder", "link", "fifo"):
        command = (sys.executable, str(_HERE / "ledger" / "adapter.py"), flaw)
        yield Foreign(f"ledger {flaw}".rstrip(), "ledger", not flaw, command, specs=_HERE / "ledger")
    for scenario in SCENARIOS:
        sound = {*scenario.verdicts.split()} <= {"conforms", "unsupported"}
        yield Foreign(f"toy {scenario.words}", "toy", sound, scenario.command, options=("--slow", str(scenario.slow)))


FOREIGN = tuple(_foreign())
