"""Plays the steps of a history against a session, and holds each answer and each inspection against the model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import permutations

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import base64url, from_base64url
from holdfast.conformance.inspection.beyond import TMPDIR
from holdfast.conformance.suites.hx_sync import model as op
from holdfast.conformance.suites.hx_sync.builders import (
    EFFECTS,
    OPEN,
    Call,
    Calls,
    Drafts,
    bent,
    damaged,
    equal,
    lies_of,
    ordered,
    verdict,
)
from holdfast.conformance.suites.hx_sync.fresh import Published
from holdfast.conformance.suites.hx_sync.generate import WORKERS, Step
from holdfast.conformance.suites.hx_sync.model import (
    NEW,
    PRIOR,
    Device,
    Lies,
    Manifest,
    Outcome,
    Segment,
    State,
    Tombstone,
    instant,
    normal,
    told_window,
)
from holdfast.conformance.suites.hx_sync.observations import Looking, type_of
from holdfast.conformance.suites.hx_sync.permutations import NODES, OFFSETS, at
from holdfast.vectors.derive import derive
from holdfast.vectors.hx_sync.objects.drafts import VAULT_KEY

# The store of a history as others change it: who synchronises the folder, and who damages what lies there


class Altering:
    """Changes the store of one session. What does not apply changes nothing."""

    def __init__(self, session: SuiteSession, drafts: Drafts, calls: Calls) -> None:
        self._session, self._drafts, self._calls = session, drafts, calls
        # The key of the object that the last call has written or found.
        self.wrote: str | None = None
        # Each step that is done here: the state behind it.
        self.steps: Mapping[str, Callable[[Step, State], State]] = {
            "place": self._place,
            "damage": self._damage,
            "mend": self._mend,
            "spoil": self._spoil,
            "unspoil": self._unspoil,
            "litter": self._litter,
            "remove": self._remove,
        }

    def _place(self, step: Step, state: State) -> State:
        made = self._drafts.large(step) if step.how == "large" else self._drafts.any(step)
        if made.key in state.store:
            return state
        self._session.place(made.key, made.data)
        return state.lying(made.key, lies_of(made))

    def _damage(self, step: Step, state: State) -> State:
        """Other bytes take the place of an object, as far as its bytes are known."""
        made = self._drafts.of(step.which)
        if made is None or made.key in self._calls.whole or made.key not in state.store:
            return state
        data = self._session.file(made.key)["bytes"]
        other = self._drafts.of(step.which + 1)
        if data is None or other is None:
            return state
        return self._lying(made.key, data, damaged(step.how, made, from_base64url(data), other), state)

    def _lying(self, key: str, data: str, found: tuple[bytes, Lies] | None, state: State) -> State:
        if found is None:
            return state
        self._calls.whole[key] = from_base64url(data), state.store[key]
        # Who looks at size and time alone takes what has a bit turned for what it was.
        self._session.place(key, found[0], times="kept")
        return state.lying(key, found[1])

    def _mend(self, step: Step, state: State) -> State:
        made = self._drafts.of(step.which)
        return state if made is None else self._whole(made.key, state)

    def _whole(self, key: str, state: State) -> State:
        if key not in self._calls.whole:
            return state
        data, lies = self._calls.whole.pop(key)
        self._session.place(key, data)
        return state.lying(key, lies)

    def _spoil(self, step: Step, state: State) -> State:
        """What the last call has written or found cannot be opened any more, a manifest too."""
        key = self.wrote
        if key is None or key in self._calls.whole or key not in state.store:
            return state
        data = self._session.file(key)["bytes"]
        return state if data is None else self._lying(key, data, bent(step.how, from_base64url(data)), state)

    def _unspoil(self, _: Step, state: State) -> State:
        """The whole object again, but for a manifest that was written anew."""
        key = self.wrote
        if key is None or key not in state.store:
            return state
        if isinstance(state.store[key].says, Manifest):
            self._calls.whole.pop(key, None)
            return state
        return self._whole(key, state)

    def _litter(self, step: Step, state: State) -> State:
        """A file that a synchroniser leaves beside an object."""
        made = self._drafts.of(step.which)
        if made is None or not made.data:
            return state
        folder, _, name = made.key.rpartition("/")
        stem, _, ending = name.partition(".")
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
        return replace(state, foreign=state.foreign | {key})

    def _remove(self, _: Step, state: State) -> State:
        """The object of a tombstone is gone, or that of a segment that has made no blobs."""
        for made in self._drafts.newest():
            is_plain = isinstance(made.says, Tombstone) or (
                isinstance(made.says, Segment) and not made.says.batch.get("artifacts")
            )
            if is_plain and made.key in state.store and made.key not in self._calls.whole:
                self._session.remove(made.key)
                return state.without(made.key)
        return state


# The tombstone that the command line has published: what it says is not asked for, and is read in the store

# The command line may go by the clock of the machine.
_MACHINE = ("2025-01-01T00:00:00Z", "2099-12-31T00:00:00Z")


def announced(look: Looking, key: str, data: str | None, since: str, now: str) -> Tombstone:
    """What the object at this key says, which must be a window from `since` to now. Fails with what differs."""
    payload = derive("hx.opened", {"object": data})["payload"] or {}
    ends = [instant(each) for each in (*_MACHINE, now)]
    wrong = "start_ts" not in payload or normal(payload["start_ts"]) != normal(since)
    if wrong or not (instant(payload["end_ts"]) == ends[2] or ends[0] <= instant(payload["end_ts"]) <= ends[1]):
        look.differs("wrong_reason", f"a window from {since} to now", repr(payload))
    return told_window(key, payload)


# The index of a device, and what SQLite puts beside it.
_INDEX = "index.db"
# The device is searched for the content of at most this number of things that it has forgotten.
_MOST = 48
# Beyond any clock.
_AHEAD = "9000-01-01T00:00:00Z"
# The steps that ask for operations, where a race has another name for them.
_WHATS = {"blob": "publish_blob", "publish_manifest": "manifest", "import_object": "import one"}


class HistoryRunner:
    """One history under way. It skips what the adapter does not claim, and what does not apply now."""

    def __init__(self, bench: Bench, session: SuiteSession, published: list[Published]) -> None:
        self._bench, self._session, self._published = bench, session, published
        self._drafts, self._look = Drafts(bench, session), Looking(bench, session)
        self._state = State({node: Device(self._drafts.node_id(node)) for node in NODES})
        self._calls = Calls(session, self._drafts)
        self._altering = Altering(session, self._drafts, self._calls)
        self._last: Call | None = None
        # Forgotten while another process may have read, or by a call that never ended.
        self._disturbed = False
        # The worker that was killed and does not run yet.
        self._down: int | None = None
        # How often it was looked: each time below another folder.
        self._looks = 0

    def step(self, step: Step) -> None:
        """See `histories.HistoryRunner`."""
        verb, _, rest = step.what.partition(" ")
        special: Mapping[str, Callable[[Step, str], object]] = {
            "race": self._race,
            "rush": self._rush,
            "repeat": self._repeat,
            "command": self._command,
            "kill": self._interrupt if rest else lambda each, _: self._session.begin_again("kill", each.worker),
            "leave": self._leave,
            "lose": self._lose_index,
            "look": lambda each, _: self._observe(each.node, each.worker),
            "clock": lambda each, _: self._session.clock(f"{'-' if each.seconds < 0 else '+'}{abs(each.seconds):.6f}s"),
            "restart": lambda each, _: self._session.restart(each.worker),
        }
        if verb in special:
            special[verb](step, rest)
            return
        if step.what in self._altering.steps:
            self._state = self._altering.steps[step.what](step, self._state)
            return
        call = self._prepared(step, step.what)
        if call is not None:
            self._call(call, step)

    def compare(self) -> None:
        """See `histories.HistoryRunner`."""
        for worker, node in enumerate(sorted(self._state.devices)):
            self._observe(node, worker % WORKERS)
        self._look.objects(self._state, 0)
        told = "the key of the vault, and nothing that was said"
        key = [VAULT_KEY, {"bytes": base64url(bytes.fromhex(VAULT_KEY))}]
        self._look.unread("HXSync", [*key, *self._drafts.marks()[:40]], told)
        for folder in ("nodes", TMPDIR):
            self._look.unread(folder, key, "the key of the vault")
        # Pages of an index that another process had open, or that a call which never ended wrote, are open.
        but = _INDEX if self._disturbed else None
        for node, device in sorted(self._state.devices.items()):
            gone = self._drafts.gone(device, blobs=not self._disturbed)
            self._look.unread(f"nodes/{node}", gone[:_MOST], "what it has forgotten", but=but)

    # Calls

    def _prepared(self, step: Step, what: str) -> Call | None:
        return self._calls.prepared(step, what, self._state)

    def _repeat(self, step: Step, _: str) -> None:
        """The last call again, with the same arguments."""
        if self._last is not None:
            self._call(self._calls.again(self._last), replace(step, node=self._last.args.get("node", step.node)))

    def _call(self, call: Call, step: Step, *, loosely: bool = False) -> None:
        """Call it, and hold the answer against the model."""
        self._last = call
        answer = self._session.call(call.method, call.args, step.worker)
        outcome = call.operation(self._state)
        if loosely and outcome.said <= EFFECTS:
            outcome = replace(outcome, said=EFFECTS, counts={}, rejected=outcome.rejected)
        self._judge(answer, outcome)
        self._after(outcome.state)
        self._altering.wrote = outcome.value.get("key", call.args.get("key", self._altering.wrote))
        # What was known or is refused has changed nothing, in no report either.
        if answer.outcome != "accepted" or answer.effect == PRIOR or call.method in ("forget", "rebuild", "import"):
            self._observe(step.node, 1 - step.worker)

    def _judge(self, answer: Answer, outcome: Outcome) -> None:
        came, value = answer.said, answer.value or {}
        if came not in outcome.said:
            self._look.differs(verdict(answer, outcome), str(outcome), f"{came} {value or answer.data or ''}".strip())
        if came not in EFFECTS:
            return
        other = {name: value.get(name) for name, due in outcome.value.items() if not equal(name, due, value.get(name))}
        if other:
            self._look.weigh("wrong_reason", repr(dict(outcome.value)), repr(other))
        if outcome.rejected is not None:
            self._look.rejected(outcome.rejected, value["rejected"])
        if any(not least <= value[name] <= most for name, (least, most) in outcome.counts.items()):
            self._look.weigh("wrong_reason", str(outcome), repr({name: value[name] for name in outcome.counts}))

    def _after(self, state: State) -> None:
        """Go on to this state, and learn which bytes were written."""
        for key, lies in state.store.items():
            if not lies.sha256:
                state = op.learned(state, key, self._look.published(key, lies))
                self._remember(key)
        self._state = state

    def _remember(self, key: str) -> None:
        found = self._session.file(key)["bytes"]
        if found is not None:
            self._published.append(Published(key, type_of(key), found))

    def _observe(self, node: str, worker: int) -> None:
        """Inspect the store, and ask a worker for a device; the other one, if that is down."""
        worker = 1 - worker if worker == self._down else worker
        self._look.store(self._state)
        device = self._state.devices.get(node)
        if device is None:
            return
        self._look.device(node, device, worker)
        newest = next(self._drafts.newest(), None)
        if newest is not None:
            # Everything, then below each folder on the way in turn.
            parts = newest.key.split("/")
            self._look.listed(self._state, "/".join(parts[: self._looks % len(parts)]), worker)
            self._looks += 1
            for made in self._drafts.newest():
                if made.method == "publish_blob":
                    self._look.blob(node, device, derive("hx.sha256", made.args["bytes"]), worker)
                    break

    # Two at once

    def _race(self, step: Step, kinds: str) -> None:
        """The same as a rush, and what the devices have imported then is looked at, and they import everything."""
        before = self._state
        calls = self._rush(step, kinds)
        # In one order: the gate asks the same again.
        for node in sorted({call.args["node"] for call in calls if "node" in call.args} & self._state.devices.keys()):
            device = before.devices.get(node)
            lower = op.emptied(device) if device is not None and "rebuild" in kinds else device
            self._settle(node, lower, step.worker)

    def _rush(self, step: Step, kinds: str) -> Sequence[Call]:
        """Each worker calls at once; some order of the two has to explain both answers."""
        calls = self._pair(step, kinds)
        if calls is None:
            return ()
        before, self._disturbed = self._state, True
        answers = self._session.race([(call.method, call.args) for call in calls])
        after = [state for order in permutations(range(WORKERS)) if (state := ordered(before, calls, answers, order))]
        if not after:
            due = [str(call.operation(before)) for call in calls]
            received = [f"{answer.said} {answer.value or ''}" for answer in answers]
            both = all(answer.effect == NEW for answer in answers)
            self._look.differs("fail_open" if both else "wrong_reason", " | ".join(due), " | ".join(received))
        self._after(after[0])
        for call, answer in zip(calls, answers, strict=True):
            if answer.said in OPEN:
                self._call(call, replace(step, worker=0), loosely=True)
        return calls

    def _settle(self, node: str, lower: Device | None, worker: int) -> None:
        """What a device has is somewhere between this and everything, and then it imports everything."""
        upper = op.import_all(self._state, node).state
        if lower is not None:
            self._look.adopted(node, lower, upper.devices[node], worker)
        answer = self._session.call("import", {"node": node}, worker)
        outcome = op.import_all(self._state, node)
        self._judge(answer, replace(outcome, said=EFFECTS, counts={}))
        self._state = outcome.state
        self._observe(node, 1 - worker)

    def _pair(self, step: Step, kinds: str) -> Sequence[Call] | None:
        one, other = (_WHATS.get(kind, kind) for kind in kinds.split())
        if kinds == "publish contradiction":
            self._drafts.segment(step)
            calls = [self._prepared(step, "again"), self._prepared(replace(step, draft=step.draft + 1), "contradict")]
        elif kinds == "enroll contradiction":
            calls = [self._prepared(replace(step, how=how), "enroll") for how in ("", "with another id")]
        elif one == other:
            # A device that is there is enrolled already.
            node = "d" if one == "enroll" and step.node in self._state.devices else step.node
            made = self._prepared(replace(step, node=node), one)
            calls = [made, made]
        else:
            # A manifest of the device that publishes would list bytes that are not known yet.
            node = "c" if {one, other} == {"publish", "manifest"} else step.node
            beside = replace(step, draft=step.draft + 1, node=node)
            calls = [self._prepared(step, one), self._prepared(beside, other)]
        found = [call for call in calls if call is not None]
        return found if len(found) == WORKERS else None

    # Processes

    def _interrupt(self, step: Step, what: str) -> None:
        """Kill a worker within an operation; another does it again, and it is done once."""
        node = "d" if what == "enroll" else step.node
        call = self._prepared(replace(step, node=node), what)
        if call is None or not self._is_interruptible(call, what):
            return
        before, after = self._state, call.operation(self._state).state
        self._session.start(call.method, call.args, step.worker)
        time.sleep(step.seconds)
        self._session.begin_again("kill", step.worker)
        self._look.crashed = self._disturbed = True
        there = [key for key in after.store if key not in before.store and self._session.file(key)["exists"]]
        written = {key: self._look.published(key, after.store[key]) for key in there}
        device = before.devices.get(node)
        if device is not None:
            lower = op.emptied(device) if what == "rebuild" else device
            self._look.adopted(node, lower, op.joined(device, after.devices[node]), 1 - step.worker)
        self._call(call, replace(step, node=node, worker=1 - step.worker), loosely=True)
        for key, sha256 in written.items():
            if self._state.store[key].sha256 != sha256:
                self._look.differs("fail_open", f"at {key} the bytes that others have seen", "others after a retry")

    def _is_interruptible(self, call: Call, what: str) -> bool:
        """Whether it does something, and what it has done follows from what is shown then."""
        if what == "rebuild" and op.is_other_anew(self._state, call.args["node"]):
            return False
        return call.operation(self._state).said <= EFFECTS

    def _leave(self, step: Step, what: str) -> None:
        """Kill a worker within an operation. Another goes on with other content, before the killed one starts again.

        What it left is of no account then: neither to the one that goes on, nor to the one that starts.
        """
        other = replace(step, node="d" if what == "enroll" else step.node, worker=1 - step.worker, draft=step.draft + 1)
        call = self._prepared(replace(other, draft=step.draft), what)
        if call is None or not self._is_interruptible(call, what):
            return
        device, after = self._state.devices.get(other.node), call.operation(self._state).state
        self._session.start(call.method, call.args, step.worker)
        time.sleep(step.seconds)
        self._session.kill(step.worker)
        self._down, self._look.crashed, self._disturbed = step.worker, True, True
        if device is None:
            self._call(call, other, loosely=True)
        else:
            lower = op.emptied(device) if what == "rebuild" else device
            upper = op.joined(device, after.devices[other.node])
            self._state = self._state.at(other.node, self._look.adopted(other.node, lower, upper, other.worker))
        for then in ("publish", "import", "forget"):
            if (call := self._prepared(other, then)) is not None:
                self._call(call, other, loosely=then == "import")
        self._session.reopen(step.worker)
        self._down = None
        self._observe(other.node, step.worker)

    # Operators

    def _command(self, step: Step, command: str) -> None:
        """The command line, another process, which may go by the clock of the machine."""
        if "command_line" in self._bench.not_claimed or step.node not in self._state.devices:
            return
        is_ahead, reads = step.how == "ahead", command in ("status", "verify")
        since = _AHEAD if is_ahead else at(30 + step.draft % 2 / 2, offset=OFFSETS[step.draft % len(OFFSETS)])
        arguments = {"forget": ["forget", "--since", since], "status": ["sync", "status"]}.get(command, [command])
        before = self._files() if reads or is_ahead else []
        told = self._session.provoke("command_line", {"node": step.node, "arguments": arguments}, step.worker)
        if VAULT_KEY in told["output"]:
            self._look.differs("fail_open", "no key of the vault in what is printed", told["output"])
        if is_ahead:
            if told["status"] == 0 or self._files() != before:
                self._look.differs("fail_open", "no window that begins in the future", f"{told}")
            self._observe(step.node, step.worker)
            return
        if told["status"] != 0 and command in ("forget", "status"):
            self._look.differs("over_refusal", "exit status 0", f"{told['status']}: {told['output']}")
        if reads and (after := self._files()) != before:
            self._look.differs("state_leak", f"{command} changes no file: {before}", repr(after))
        if command == "forget":
            self._forgot(step.node, since)
        elif command == "import":
            device = self._state.devices[step.node]
            upper = op.import_all(self._state, step.node).state.devices[step.node]
            # What it says where something was refused is open; what it has done is not, if it says that all is well.
            found = self._look.adopted(step.node, upper if told["status"] == 0 else device, upper, step.worker)
            self._state = self._state.at(step.node, found)
            self._settle(step.node, found, step.worker)

    def _files(self) -> list[tuple[str, str]]:
        """What lies in the store, with the digest of its bytes."""
        found = [row["path"] for row in self._session.tree("HXSync") if row["kind"] == "file"]
        return [(path, self._session.file(path)["sha256"]) for path in sorted(found)]

    def _forgot(self, node: str, since: str) -> None:
        """There is one more tombstone in the store, from that instant to now, and it is applied."""
        there = {row["path"] for row in self._session.tree("HXSync") if row["path"].endswith(".hxtomb")}
        fresh = sorted(there - self._state.store.keys() - self._state.foreign)
        if len(fresh) != 1:
            self._look.differs("lost_durability", "one tombstone that the command line has published", repr(fresh))
        found = self._session.file(fresh[0])
        says = announced(self._look, fresh[0], found["bytes"], since, self._session.now)
        lies = Lies(says, found["sha256"])
        device = self._state.devices[node]
        after = device.having({**device.imported, fresh[0]: lies}, device.told)
        self._state = self._state.lying(fresh[0], lies).at(node, after)
        self._remember(fresh[0])

    # What is lost

    def _lose_index(self, step: Step, _: str) -> None:
        """An index is deleted under running processes: nothing is acknowledged without it, and it is made again."""
        folder, node = f"nodes/{step.node}", step.node
        device = self._state.devices[node]
        for found in self._session.tree(folder):
            if found["path"].startswith(f"{folder}/index.db"):
                self._session.remove(found["path"])
        call = self._prepared(step, step.how)
        if call is not None and step.how != "forget":
            answer = self._session.call(call.method, call.args, step.worker)
            if answer.reason != "STORE_UNAVAILABLE":
                verdict = "fail_open" if answer.outcome == "accepted" else "wrong_reason"
                self._look.weigh(verdict, "STORE_UNAVAILABLE without an index", answer.said)
        self._state = replace(
            self._state, devices={name: each for name, each in self._state.devices.items() if name != node}
        )
        made = Call(
            "enroll",
            {"node": node, "node_id": device.node_id},
            lambda state: op.enroll(state, node, device.node_id),
        )
        self._call(made, step)


@contextmanager
def playing(bench: Bench, published: list[Published], **config: str) -> Iterator[HistoryRunner]:
    """A history in a session of its own with this config; what it publishes is added to `published`."""
    with bench.session(workers=WORKERS, config=config) as session:
        yield HistoryRunner(bench, session, published)
