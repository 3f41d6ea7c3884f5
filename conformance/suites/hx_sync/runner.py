"""Plays the steps of a history against a session that is held against the model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.model import FAILED, Call, is_done, said
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import base64url, from_base64url
from holdfast.conformance.inspection.beyond import TMPDIR
from holdfast.conformance.suites.hx_sync.builders import Devices, Drafts, bad, bent, damaged, lies_of, putting
from holdfast.conformance.suites.hx_sync.fresh import Published
from holdfast.conformance.suites.hx_sync.generate import WORKERS, Step
from holdfast.conformance.suites.hx_sync.model import (
    COMMAND,
    NEW,
    PRIOR,
    Bad,
    Lies,
    Manifest,
    State,
    begun,
    beside,
    cached,
    called,
    command,
)
from holdfast.conformance.suites.hx_sync.permutations import OFFSETS, Made, at
from holdfast.conformance.suites.hx_sync.view import Segment, Tombstone, normal
from holdfast.vectors.derive import derive
from holdfast.vectors.hx_sync.objects.drafts import VAULT_KEY

# The index of a device, and what SQLite puts beside it.
_INDEX = "index.db"
# The device is searched for the content of at most this number of things that it has forgotten.
_MOST = 48
# Beyond any clock.
_AHEAD = "9000-01-01T00:00:00Z"


class HistoryRunner:
    """One history under way. It skips what the adapter does not claim, and what does not apply now."""

    def __init__(self, bench: Bench, session: SuiteSession, published: list[Published]) -> None:
        self._bench, self._session = bench, session
        self._drafts = Drafts(bench, session)
        self._devices = Devices(bench, session, published)
        self._model = self._devices.model
        self._last: Call | None = None
        # The key of the object that the last call has written or found.
        self._wrote = ""
        # The bytes that lay where others lie now, and what they said.
        self._whole: dict[str, tuple[bytes, Lies]] = {}
        # Forgotten while another process may have read, or by a call that never ended.
        self._disturbed = False
        # The worker that was killed and does not run yet.
        self._down: int | None = None
        # How often it was looked: each time below another folder.
        self._looks = 0

    @property
    def _state(self) -> State:
        return self._devices.state

    def step(self, step: Step) -> None:
        """See `histories.HistoryRunner`."""
        verb, _, rest = step.what.partition(" ")
        act: Callable[[Step, str], None] | None = getattr(self, f"_{verb}", None)
        if act is not None:
            act(step, rest)
        elif (call := self._prepared(step, step.what)) is not None:
            self._call(call, step)

    def compare(self) -> None:
        """See `histories.HistoryRunner`."""
        self._devices.compare()
        key = [VAULT_KEY, {"bytes": base64url(bytes.fromhex(VAULT_KEY))}]
        told = "the key of the vault, and nothing that was said"
        self._devices.unread("HXSync", [*key, *self._drafts.marks()[:40]], told)
        for folder in ("nodes", TMPDIR):
            self._devices.unread(folder, key, "the key of the vault")
        # Pages of an index that another process had open, or that a call which never ended wrote, are open.
        but = _INDEX if self._disturbed else None
        for node, device in sorted(self._state.devices.items()):
            gone = self._drafts.gone(device, blobs=not self._disturbed)[:_MOST]
            self._devices.unread(f"nodes/{node}", gone, "what it has forgotten", but=but)

    # Calls

    def _prepared(self, step: Step, what: str) -> Call | None:
        """The call of a step; None where it does not apply."""
        node, drafts, made = step.node, self._drafts, self._drafts.of(step.which)
        if what in ("import", "rebuild", "publish_manifest"):
            return called(what, node=node) if what != "rebuild" or self._is_rebuildable(node) else None
        if what == "enroll":
            return called(what, node=node, node_id=drafts.node_id("another" if step.how else node))
        if what == "again":
            return called(made.method, **made.args) if made is not None and self._is_repeatable(made) else None
        if what == "import_object":
            return None if made is None else called(what, node=node, key=made.key)
        if what in ("put", "put again"):
            made = drafts.any(step) if what == "put" else made
            return putting(made) if made is not None and made.data else None
        if what in ("put another", "put at the manifest"):
            return None if made is None else self._replacing(made, step, what)
        making = {
            "publish": drafts.segment,
            "publish_blob": drafts.blob,
            "forget": drafts.tombstone,
            "contradict": drafts.contradiction,
        }
        made = making[what](step)
        return None if made is None else called(made.method, **made.args)

    def _replacing(self, made: Made, step: Step, what: str) -> Call | None:
        """Other bytes for a key where an object lies: the last one differs, or they are those of another object."""
        key, data = made.key, made.data
        if what == "put another":
            data = data[:-1] + bytes([data[-1] ^ 1]) if data else b""
        else:
            key = derive("hx.key", {"type": "manifest", "node_id": self._drafts.node_id(step.node)})
        if not data or key not in self._state.store:
            return None
        return called("put", bad(data, frozenset())[1], key=key, bytes=base64url(data))

    def _is_repeatable(self, made: Made) -> bool:
        """Not a window that another has sealed or that was taken back to a clock, nor one whose object is gone."""
        if made.method != "forget":
            return bool(made.method)
        lies = self._state.store.get(made.key)
        if lies is not None and isinstance(lies.says, Bad):
            return True
        if lies is None or not isinstance(lies.says, Tombstone) or lies == lies_of(made):
            return False
        return normal(made.args["end_ts"]) == normal(lies.says.end_ts) and made.key not in self._whole

    def _is_rebuildable(self, node: str) -> bool:
        """Not where what is imported cannot be imported again: what came with it may then be told in two ways."""
        device = self._state.devices.get(node)
        return device is None or not any(
            isinstance(lies.says, Segment) and lies.says.batch.get("artifacts") and self._state.store.get(key) != lies
            for key, lies in device.imported.items()
        )

    def _repeat(self, step: Step, _: str) -> None:
        """The last call again, with the same arguments."""
        if self._last is not None:
            self._call(self._last, replace(step, node=self._last.args.get("node", step.node)))

    def _call(self, call: Call, step: Step) -> None:
        """Call it, and look at what must not have changed."""
        self._last = replace(call, about=replace(call.about, begun=False, beside=False))
        answer = self._devices.ask(call, step.worker)
        self._wrote = (answer.value or {}).get("key", call.args.get("key", self._wrote))
        # What was known or is refused has changed nothing, in no report either.
        if answer.words != NEW or call.method in ("forget", "rebuild", "import"):
            self._observe(step.node, 1 - step.worker)
        else:
            self._devices.must_show(self._model.stored(self._state), f"after {call.row}", step.worker)

    def _observe(self, node: str, worker: int) -> None:
        """Inspect the store, and ask a worker for a device; the other one, if that is down."""
        worker = 1 - worker if worker == self._down else worker
        if len(self._devices.states.possible) > 1:
            # What is due below follows from one of them.
            self._devices.compare(worker=worker)
        due = [self._model.stored(self._state)]
        newest = next(self._drafts.newest(), None)
        if node in self._state.devices:
            due += self._model.of_device(self._state, node)
        if node in self._state.devices and newest is not None:
            # Everything, then below each folder on the way in turn.
            parts = newest.key.split("/")
            due.append(self._model.listed(self._state, "/".join(parts[: self._looks % len(parts)])))
            self._looks += 1
            blobs = (made.args["bytes"] for made in self._drafts.newest() if made.method == "publish_blob")
            due += [cached(self._state, node, derive("hx.sha256", each)) for each in [*blobs][:1]]
        for each in due:
            self._devices.must_show(each, f"worker {worker}", worker)

    # The store as others change it: who synchronises the folder, and who damages what lies there

    def _place(self, step: Step, _: str) -> None:
        made = self._drafts.large(step) if step.how == "large" else self._drafts.any(step)
        if made.key not in self._state.store:
            self._devices.lay(made)

    def _damage(self, step: Step, _: str) -> None:
        """Other bytes take the place of an object, as far as its bytes are known."""
        made, other = self._drafts.of(step.which), self._drafts.of(step.which + 1)
        if made is not None and other is not None:
            self._alter(made.key, lambda data: damaged(step.how, made, data, other))

    def _alter(self, key: str, made: Callable[[bytes], tuple[bytes, Lies] | None]) -> None:
        if key in self._whole or key not in self._state.store:
            return
        data = from_base64url(self._session.file(key)["bytes"] or "")
        found = made(data) if data else None
        if found is not None:
            self._whole[key] = data, self._state.store[key]
            # Who looks at size and time alone takes what has a bit turned for what it was.
            self._devices.put(key, *found, times="kept")

    def _mend(self, step: Step, _: str) -> None:
        made = self._drafts.of(step.which)
        self._restore(made.key if made is not None else "")

    def _restore(self, key: str) -> None:
        if key in self._whole:
            self._devices.put(key, *self._whole.pop(key))

    def _spoil(self, step: Step, _: str) -> None:
        """What the last call has written or found cannot be opened any more, a manifest too."""
        self._alter(self._wrote, partial(bent, step.how))

    def _unspoil(self, _: Step, __: str) -> None:
        """The whole object again, but for a manifest that was written anew."""
        there = self._state.store.get(self._wrote)
        if there is not None and isinstance(there.says, Manifest):
            self._whole.pop(self._wrote, None)
        elif there is not None:
            self._restore(self._wrote)

    def _litter(self, step: Step, _: str) -> None:
        """A file that a synchroniser leaves beside an object."""
        made = self._drafts.of(step.which)
        if made is None or not made.data:
            return
        folder, name = made.key.rsplit("/", 1)
        stem, ending = name.split(".", 1)
        names = {
            "copy": f"{stem} (conflict copy).{ending}",
            "dotfile": f".{name}",
            "dot folder": f".stversions/{name}",
            "upper case": name.upper(),
            # Nearly as long as a file system takes, so that nothing can be put before or behind it.
            "long": f"{'x' * (240 - len(name))}{name}",
        }
        key = f"{folder}/{names[step.how]}"
        self._session.place(key, made.data)
        self._devices.states.narrow(lambda state: [replace(state, foreign=state.foreign | {key})])

    def _remove(self, _: Step, __: str) -> None:
        """The object of a tombstone is gone, or that of a segment that has made no blobs."""
        for made in self._drafts.newest():
            is_plain = isinstance(made.says, Tombstone) or (
                isinstance(made.says, Segment) and not made.says.batch.get("artifacts")
            )
            if is_plain and made.key in self._state.store and made.key not in self._whole:
                self._devices.remove(made.key)
                return

    # Two at once

    def _race(self, step: Step, kinds: str) -> None:
        """Each worker calls at once. But in a rush, what is there then is looked at, and all devices import."""
        calls = self._pair(step, *kinds.split())
        if None in calls:
            return
        self._disturbed, is_rush = True, step.what.startswith("rush")
        made = [beside(call) for call in calls if call is not None]
        undone = self._devices.race(made)
        if undone or not is_rush:
            self._devices.compare(*undone)
        for call in undone:
            self._call(begun(call), replace(step, worker=0))
        nodes = {} if is_rush else {call.args["node"] for call in made if "node" in call.args}
        # In one order: the gate asks the same again.
        for node in sorted(nodes & self._state.devices.keys()):
            self._call(begun(called("import", node=node)), replace(step, node=node))

    def _pair(self, step: Step, one: str, other: str) -> list[Call | None]:
        if other == "contradiction" and one == "publish":
            self._drafts.segment(step)
            return [self._prepared(step, "again"), self._prepared(replace(step, draft=step.draft + 1), "contradict")]
        if other == "contradiction":
            return [self._prepared(replace(step, how=how), "enroll") for how in ("", "with another id")]
        if one == other:
            # A device that is there is enrolled already.
            node = "d" if one == "enroll" and step.node in self._state.devices else step.node
            return [self._prepared(replace(step, node=node), one)] * WORKERS
        # A manifest of the device that publishes would list bytes that are not known yet.
        node = "c" if {one, other} == {"publish", "publish_manifest"} else step.node
        return [self._prepared(step, one), self._prepared(replace(step, draft=step.draft + 1, node=node), other)]

    _rush = _race

    # Processes

    def _look(self, step: Step, _: str) -> None:
        self._observe(step.node, step.worker)

    def _clock(self, step: Step, _: str) -> None:
        self._session.clock(f"{'-' if step.seconds < 0 else '+'}{abs(step.seconds):.6f}s")

    def _restart(self, step: Step, _: str) -> None:
        self._session.restart(step.worker)

    def _kill(self, step: Step, what: str) -> None:
        """Kill a worker within an operation; another does it again, and it is done once.

        Or that goes on with other content, before the killed one starts again: what it left is of no account then.
        """
        if not what:
            self._session.begin_again("kill", step.worker)
            return
        step = replace(step, node="d" if what == "enroll" else step.node)
        other = replace(step, worker=1 - step.worker)
        call = self._prepared(step, what)
        if call is None or not self._is_interruptible(call):
            return
        self._devices.start(replace(call, worker=step.worker))
        time.sleep(step.seconds)
        self._session.kill(step.worker)
        self._model.crashed = self._model.unsettled = self._disturbed = True
        goes_on = step.what.startswith("leave")
        if goes_on:
            self._down = step.worker
        else:
            self._session.reopen(step.worker)
        self._devices.compare(call, worker=other.worker)
        self._model.unsettled = False
        if what == "enroll" or not goes_on:
            self._call(begun(call), other)
        if not goes_on:
            return
        for then in ("publish", "import", "forget"):
            if (call := self._prepared(replace(other, draft=step.draft + 1), then)) is not None:
                self._call(begun(call) if then == "import" else call, other)
        self._session.reopen(step.worker)
        self._down = None
        self._observe(step.node, step.worker)

    def _is_interruptible(self, call: Call) -> bool:
        """Whether it does something, and what it has done follows from what is shown then."""
        device = self._state.devices.get(call.args.get("node", ""))
        # Other bytes may be taken for an object than the device has imported.
        others = (device.refuses(key, lies) == {"OBJECT_REPLACED"} for key, lies in self._state.store.items() if device)
        if call.method == "rebuild" and any(others):
            return False
        return any(each.said in (NEW, PRIOR) for each in self._model.outcomes(self._state, call, None))

    _leave = _kill

    # Operators

    def _command(self, step: Step, name: str) -> None:
        """The command line, another process, which may go by the clock of the machine."""
        if COMMAND in self._bench.not_claimed or step.node not in self._state.devices:
            return
        is_ahead = step.how == "ahead"
        since = _AHEAD if is_ahead else at(30 + step.draft % 2 / 2, offset=OFFSETS[step.draft % len(OFFSETS)])
        words = {"forget": ["forget", "--since", since], "status": ["sync", "status"]}.get(name, [name])
        call = command(step.node, f"{name} {step.how}".strip(), *words)
        reads = is_ahead or name in ("status", "verify")
        before = self._files() if reads else []
        answer = self._devices.ask(call, step.worker)
        if reads and (after := self._files()) != before:
            verdict = "fail_open" if is_ahead else "state_leak"
            self._bench.fail(verdict, f"{call.row} changes a file", expected=f"{before}", received=f"{after}")
        if name == "import":
            self._devices.compare(*[call] * (said(answer) == FAILED), worker=step.worker)
            self._call(begun(called("import", node=step.node)), step)
        self._observe(step.node, step.worker)

    def _files(self) -> list[tuple[str, str]]:
        """What lies in the store, with the digest of its bytes."""
        found = [row["path"] for row in self._session.tree("HXSync") if row["kind"] == "file"]
        return [(path, self._session.file(path)["sha256"]) for path in sorted(found)]

    # What is lost

    def _lose(self, step: Step, _: str) -> None:
        """An index is deleted under running processes: nothing is acknowledged without it, and it is made again."""
        folder, node = f"nodes/{step.node}", step.node
        device = self._state.devices[node]
        for found in self._session.tree(folder):
            if found["path"].startswith(f"{folder}/{_INDEX}"):
                self._session.remove(found["path"])
        call = self._prepared(step, step.how)
        if call is not None and step.how != "forget":
            answer = self._session.call(call.method, call.args, step.worker)
            if answer.reason != "STORE_UNAVAILABLE":
                verdict = "fail_open" if is_done(answer) else "wrong_reason"
                told = f"{call.row} without an index"
                self._bench.weigh(verdict, told, expected="STORE_UNAVAILABLE", received=answer.said)
        self._devices.states.narrow(lambda state: [state.at(node, None)])
        self._call(called("enroll", node=node, node_id=device.node_id), step)


@contextmanager
def playing(bench: Bench, published: list[Published], **config: str) -> Iterator[HistoryRunner]:
    """A history in a session of its own with this config; what it publishes is added to `published`."""
    with bench.session(workers=WORKERS, config=config) as session:
        yield HistoryRunner(bench, session, published)
