"""hx-sync: every operation of the contract under the same attacks, so that none is hardly attacked.

The steps stand here, one for each operation and attack. What is due follows from the pure model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.model import DONE, FAILED, Call
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import base64url
from holdfast.conformance.suites.hx_sync.builders import Devices, putting
from holdfast.conformance.suites.hx_sync.generate import Step
from holdfast.conformance.suites.hx_sync.model import COMMAND, called
from holdfast.conformance.suites.hx_sync.permutations import Made, ObjectBuilder, at
from holdfast.conformance.suites.hx_sync.runner import playing
from holdfast.vectors.hx_sync.objects.drafts import VAULT_KEY

# Every operation and command while the index of its device, or the store, is gone, damaged or another.
#
# It is taken away under running processes, and they are asked; then they are started on what is left, and asked again.
# What may be answered stands in `_LOST`. What is refused has changed nothing, and once what was taken is back every
# device shows what it had shown.


_COMMANDS: Mapping[str, Sequence[str]] = {
    "command_line forget": ("forget", "--since", at(500)),
    "command_line import": ("import",),
    "command_line sync": ("sync", "status"),
    "command_line verify": ("verify",),
}
_UNAVAILABLE, _MISSING, _STORE = "STORE_UNAVAILABLE", "OBJECT_MISSING", "HXSync"
_WRITING = ("publish", "publish_blob", "publish_manifest", "put")

_ANY = frozenset({"new", "prior"})
# How a store is lost: to what cannot be listed, and to another one.
_FILE, _ANOTHER = "a file", "of another vault"
# What is lost in which way, and what may be answered then beside a refusal.
_LOST: Mapping[str, Mapping[str, Mapping[str, frozenset[str]]]] = {
    # A device may be known without its index, so what is accepted is held against the store. An index that was deleted
    # may be made anew, one that is damaged not.
    "nodes": {
        how: {
            **dict.fromkeys(_WRITING, _ANY),
            "enroll": frozenset({"new"} if how == "unlinked" else {"prior"}),
            "command_line verify": frozenset({DONE}),
        }
        for how in ("unlinked", "cut", "of another format")
    },
    # If its folder is empty, it may be taken for a store into which no device has published.
    _STORE: {
        _FILE: {"enroll": _ANY, **dict.fromkeys(("command_line sync", "command_line verify"), frozenset({DONE}))},
        **{
            how: {
                **dict.fromkeys((*_WRITING, "forget", "rebuild", "enroll"), _ANY),
                "import_object": frozenset({_MISSING}),
                "import": frozenset({"prior"}),
                **dict.fromkeys(_COMMANDS, frozenset({DONE})),
            }
            for how in ("empty", _ANOTHER)
        },
    },
}
# A folder of the harness, with what comes in the place of the store.
_BESIDE = "beside"


def asked_of(world: ObjectBuilder, node: str, label: str, enrolled: str = "") -> dict[str, Call]:
    """A call of each operation for a device that is there, with objects of their own; `enrolled` is enrolled."""
    published = world.segment(node, f"{label} published", world.event(node, "s1", 1, at(1), label))
    blob, window = world.blob(f"{label} blob"), world.tombstone(f"{label} window", at(500), at(501))
    own = world.segment("z", f"{label} put", world.event("z", "s3", 1, at(2), label))
    made = [called(each.method, **{**each.args, "node": node}) for each in (published, blob, window)]
    made += [called(row, node=node) for row in ("publish_manifest", "import", "rebuild")]
    made += [called("import_object", node=node, key=lying_of(world, label).key), putting(own)]
    made += [called("enroll", node=enrolled or node, node_id=world.node_id(enrolled or node))]
    return {call.row: call for call in made}


def lying_of(world: ObjectBuilder, label: str) -> Made:
    """What has to lie in the store for `import_object`."""
    return world.segment("z", f"{label} lying", world.event("z", "s2", 1, at(2), label))


class _Losing(Devices):
    """A session with a device for each row, each of which has imported something."""

    def __init__(self, bench: Bench, session: SuiteSession) -> None:
        super().__init__(bench, session)
        # Of the same label as what `enroll` makes ids of.
        self._world = ObjectBuilder(bench, session, "nodes")
        rows = [*asked_of(self._world, "a", ""), *(_COMMANDS if COMMAND not in bench.not_claimed else ())]
        self._rows = {f"n{number}": row for number, row in enumerate(rows)}
        for node in self._rows:
            self.enroll(node)
            self.lay(self._known(node))
            self.do("import_object", node=node, key=self._known(node).key)

    def _known(self, node: str) -> Made:
        """What a device has imported before anything is lost."""
        return self._world.segment("z", f"known {node}", self._world.event("z", node, 1, at(3)))

    def lose(self, what: str, how: str, due: Mapping[str, frozenset[str]]) -> None:
        """Take it away under all processes, which are asked, and so they are when they start on what is left.

        What is refused has changed nothing, and once it is back every device shows what it had shown.
        """
        session, calls = self.session, self._calls(how)
        # A command costs a start, and what is another vault's is empty to it as well.
        operations = {node: call for node, call in calls.items() if call.method != COMMAND}
        # Now every process has each index open.
        before = {node: session.observe("state", {"node": node}) for node in calls}
        session.observe("state", worker=1)
        session.copy(what, f"{_BESIDE}/{what}")
        _take(session, what, how, [*calls])
        refused = self._ask(how, due, operations if how == _ANOTHER else calls)
        # One that was made anew is taken again.
        _take(session, what, how, sorted(calls.keys() - refused))
        if self._started_again():
            again = calls if what == "nodes" else operations
            refused -= again.keys() - self._ask(how, due, again)
        for node in sorted(refused) if how == "unlinked" else ():
            # A deleted index is made anew after any refusal without it, and an import fills it with the same.
            for call in (asked_of(self._world, node, "")["enroll"], called("import_object", key=self._known(node).key)):
                answer = session.call(call.method, {**call.args, "node": node})
                self.bench.must_be(answer, "accepted", f"a lost index is made again, after {calls[node]}")
            self._same(node, before[node], "after its index was made again")
        # Neither the key of the vault nor what an event says can be read after any refusal.
        self.unread("nodes", [VAULT_KEY], "what was refused")
        session.kill(*range(session.workers))
        session.copy(f"{_BESIDE}/{what}", what)
        session.reopen(*range(session.workers))
        self.unread(_STORE, [VAULT_KEY, "nodes unlinked"], "what was refused")
        for node in calls if what == "nodes" else sorted(refused):
            self._same(node, before[node], f"what was {how} is back")
        for node, call in operations.items():
            answer = session.call(call.method, call.args)
            self.bench.must_be(answer, "accepted", f"{call.row} by {node}, with all that it needs again")

    def _calls(self, how: str) -> dict[str, Call]:
        """A call of each row by the device that is its own, with something in the store for each to import."""
        made = {}
        for node, row in self._rows.items():
            self.lay(lying_of(self._world, f"{how} {node}"))
            if row in _COMMANDS:
                made[node] = Call(row, COMMAND, {"node": node, "arguments": [*_COMMANDS[row]]})
            else:
                made[node] = asked_of(self._world, node, f"{how} {node}")[row]
        return made

    def _ask(self, how: str, due: Mapping[str, frozenset[str]], calls: Mapping[str, Call]) -> set[str]:
        """Call each; who was refused. What may be answered beside a refusal is due. What another device shows stays."""
        session, refused, before = self.session, set[str](), self._readable(how)
        for node, call in calls.items():
            came, value = self._said(call)
            may_be, is_done = sorted(due.get(call.row, ())), came in (*_ANY, DONE)
            if came not in (_UNAVAILABLE, FAILED, *may_be):
                told, verdict = f"{call.row} by {node} on what is {how}", "fail_open" if is_done else "wrong_reason"
                self.bench.weigh(verdict, told, expected=" or ".join([_UNAVAILABLE, *may_be]), received=came)
            after = self._readable(how)
            if is_done and call.row in _WRITING and not session.file(call.args.get("key") or value["key"])["exists"]:
                self.bench.fail("lost_durability", f"{call.row} was accepted, and nothing lies at its key")
            if not is_done and after != before:
                told = f"{call.row} was refused and left something"
                self.bench.fail("state_leak", told, received=repr(after)[:600])
            refused |= set() if is_done else {node}
            before = after
        return refused

    def _said(self, call: Call) -> tuple[str, Mapping[str, Any]]:
        if call.method != COMMAND:
            answer = self.session.call(call.method, call.args, 1)
            return answer.said, answer.value or {}
        _, told = self.session.unless_fault(lambda: self.session.provoke(COMMAND, call.args, 1))
        if told and VAULT_KEY in told["output"]:
            self.bench.fail("fail_open", f"{call.row} prints the key of the vault", received=told["output"])
        return DONE if told and told["status"] == 0 else FAILED, {}

    def _readable(self, how: str) -> Any:
        """The files of the store, and what a device shows that is asked for nothing; None where it shows nothing."""
        found = self.session.tree(_STORE) if how != _FILE else [self.session.file(_STORE)]
        files = [row for row in found if row["kind"] == "file"]
        return files, self.session.sample("state", {"node": "a"}, 0)

    def _started_again(self) -> bool:
        """Kill all processes and start them on what is there; False where one refuses to start on it."""
        self.session.kill(*range(self.session.workers))
        return self.session.starts_on_what_is_there()

    def _same(self, node: str, before: Any, told: str) -> None:
        """This device shows what it had shown."""
        after = self.session.observe("state", {"node": node})
        if after != before:
            verdict = "lost_durability" if len(after["events"]) < len(before["events"]) else "state_leak"
            expected, received = repr(before)[:600], repr(after)[:600]
            self.bench.fail(verdict, f"{told}: {node}, of {self._rows[node]}", expected=expected, received=received)


@clause("HX-T4", "HX-P1", "HX-CLI-1", whole=True, written=True)
def test_no_operation_takes_a_lost_index_for_an_empty_one(bench: Bench) -> None:
    """Each index is unlinked, cut or replaced, under running processes and before they start, and later put back."""
    with bench.session(workers=2) as session:
        losing = _Losing(bench, session)
        for how, due in _LOST["nodes"].items():
            losing.lose("nodes", how, due)


def _take(session: SuiteSession, what: str, how: str, nodes: Sequence[str]) -> None:
    if what == _STORE and nodes:
        session.copy(f"{_BESIDE}/{how}", _STORE)
    for index in [f"nodes/{node}/index.db" for node in nodes] if what == "nodes" else ():
        if how == "cut":
            session.cut(index, 100)
        elif how != "unlinked":
            session.place(index, b"This is no index. " * 512)
        for found in session.tree(index.rpartition("/")[0]) if how == "unlinked" else ():
            if found["path"].startswith(index):
                session.remove(found["path"])


@clause("HX-T4", "HX-P1", "HX-CLI-1", whole=True, written=True)
def test_no_operation_takes_a_lost_store_for_another(bench: Bench) -> None:
    """The store is emptied, a plain file or that of another vault, under running processes and before they start."""
    with bench.session(workers=2) as session:
        losing = _Losing(bench, session)
        other = f"{_BESIDE}/{_ANOTHER}/vaults/0e0e0e0e-0e0e-4e0e-8e0e-0e0e0e0e0e0e"
        session.place(f"{other}/objects/segments/0.hxseg", b"HXOBJ")
        session.place(f"{_BESIDE}/{_FILE}", b"This is no store.")
        session.place(f"{_BESIDE}/empty/gone", b"")
        session.remove(f"{_BESIDE}/empty/gone")
        for how, due in _LOST[_STORE].items():
            losing.lose(_STORE, how, due)


_T = TypeVar("_T")
# Each operation by the step that asks for it. Who imports is another device than the one that publishes.
EACH: Mapping[str, Step] = {
    "publish": Step("publish", draft=1),
    "publish_blob": Step("publish_blob", draft=2),
    "put": Step("put", draft=3),
    "import_object": Step("import_object", node="b"),
    "import": Step("import", node="b"),
    "publish_manifest": Step("publish_manifest"),
    "forget": Step("forget", draft=4),
    "rebuild": Step("rebuild", node="b"),
    "enroll": Step("enroll", node="d"),
}
# Here, through another process, later, in a process that was started since, and earlier than it was done.
_AGAIN = (
    Step("repeat", 0),
    Step("repeat", 1),
    Step("clock", seconds=0.5),
    Step("restart", 0),
    Step("repeat", 0),
    Step("clock", seconds=-3600),
    Step("repeat", 1),
    Step("clock", seconds=3600),
    # Over what cannot be opened: it is refused, or written anew where that is what the operation does.
    Step("spoil", how="flipped"),
    Step("repeat", 0),
    Step("unspoil"),
    Step("repeat", 1),
)
# What a device has imported, and then the store has not: one object is gone, and another is sealed anew.
_GONE = (
    Step("publish", how="now", draft=60),
    Step("publish_blob", draft=61),
    Step("import", node="b"),
    # Of the size and the age that it had.
    Step("damage", how="flipped"),
    Step("import", node="b"),
    Step("mend"),
    Step("damage", how="replaced"),
    Step("import_object", node="b"),
    Step("import", 1, node="b"),
    Step("remove"),
)
# A device that has something to report, and is enrolled again.
_REPORTING = (
    Step("place", node="z", draft=50),
    Step("damage", how="flipped"),
    Step("litter", how="copy"),
    Step("import", node="c"),
    Step("enroll", 1, node="c"),
)
# Operations that meet in the same rows or objects.
RIVALS = (
    *((name, name) for name in EACH),
    ("publish", "publish_manifest"),
    ("publish", "forget"),
    ("publish", "import"),
    ("publish_blob", "import"),
    ("publish_manifest", "import"),
    ("put", "import"),
    ("forget", "import_object"),
    ("forget", "import"),
    ("forget", "rebuild"),
    ("import_object", "import"),
    ("import_object", "rebuild"),
    ("import", "rebuild"),
)
# How many share a session, which has a limit of time.
_TOGETHER = 4


def _shares(every: Iterable[_T]) -> Iterator[list[_T]]:
    """All of them, those of one session at a time."""
    left = iter(every)
    while some := list(islice(left, _TOGETHER)):
        yield some


@clause("HX-P3", "HX-P2", whole=True, written=True)
def test_every_operation_is_known_when_it_is_asked_for_again(bench: Bench) -> None:
    """By the same process, by another, after a restart, with the clock stepped, and over what cannot be opened."""
    # A blob too is altered after a device has it, and imported once more.
    for some in _shares((*EACH.values(), Step("publish_blob", draft=5), EACH["import_object"])):
        with playing(bench, []) as play:
            # Something to import, to list and to rebuild.
            for step in (EACH["publish"], *_GONE, *_REPORTING):
                play.step(step)
            for step in some:
                for each in (step, *_AGAIN):
                    play.step(each)
            play.compare()


@clause("HX-P4", "HX-P3", "HX-P2", whole=True, written=True)
def test_every_operation_beside_itself_and_its_rivals_is_explained_by_some_order(bench: Bench) -> None:
    """Two processes ask at once; what both answer and what is there then must come of one order of the two."""
    for some in _shares(enumerate(RIVALS)):
        with playing(bench, []) as play:
            for number, (one, other) in some:
                play.step(Step("publish", draft=100 + number))
                play.step(Step(f"race {one} {other}", number % 2, "b", draft=1000 + 10 * number))
            play.compare()


# A race that shows in one round of sixteen is nearly always found in this number of rounds.
_ROUNDS = 48
# Fewer rounds for operations that several cases race.
_OTHERS = ("publish", "publish_blob", "put", "import_object", "forget")


@clause("HX-LOC-2", "HX-P4", whole=True, written=True)
def test_of_many_who_enroll_a_device_at_once_one_makes_it(bench: Bench) -> None:
    """Two processes in many rounds, with one id and with two. The others get what the first one made."""
    with playing(bench, []) as play:
        for number in range(_ROUNDS):
            kinds = "enroll contradiction" if number % 3 == 2 else "enroll enroll"
            play.step(Step(f"rush {kinds}", number % 2, f"d{number}"))
        play.compare()


@clause("HX-P4", "HX-P3", "HX-P2", whole=True, written=True)
def test_of_many_who_ask_for_the_same_at_once_one_does_it(bench: Bench) -> None:
    """Each operation that does something once, by two processes in many rounds."""
    for some in (_OTHERS[:3], _OTHERS[3:]):
        with playing(bench, []) as play:
            for number in range(_ROUNDS // 3):
                for one in some:
                    if one == "import_object":
                        play.step(Step("place", node="z", draft=5000 + number))
                    play.step(Step(f"rush {one} {one}", number % 2, "abc"[number % 3], draft=6000 + 10 * number))
            play.compare()


# Refusals


@clause("HX-REQ-1", "HX-P7", whole=True, written=True)
def test_every_operation_that_is_refused_leaves_everything_as_it_was(bench: Bench) -> None:
    """Arguments that lack a member or have one too many, and a device that is not there."""
    with bench.session(workers=2) as session:
        world = ObjectBuilder(bench, session, "refused")
        canary = session.rand("canary")
        asked = asked_of(world, "a", "refused", enrolled="d")
        before = _everything(session)
        for method, call in asked.items():
            for wrong, reason in _wrong(call.args, canary):
                bench.must_be(session.call(method, wrong), f"refused {reason}", f"{method} {sorted(wrong)}")
                after = _everything(session)
                if after != before:
                    bench.fail("state_leak", f"{method} was refused and left something", received=repr(after)[:600])
        for folder in ("HXSync", "nodes"):
            if found := session.search(folder, [canary]):
                bench.fail("state_leak", "what was refused can be read", received=repr(found))
    for spelled in (VAULT_KEY.upper(), f" {VAULT_KEY}", f"{VAULT_KEY}0", VAULT_KEY[:-2]):
        _unkept(bench, spelled)


def _unkept(bench: Bench, spelled: str) -> None:
    """No file holds a key that was given in this spelling, regardless of what a session does with it."""
    with bench.session(config={"vault_key": spelled}) as session:
        for call in asked_of(ObjectBuilder(bench, session, "mistyped"), "a", "mistyped").values():
            session.call(call.method, call.args)
        given = {spelled, spelled.strip(), spelled.strip().lower(), VAULT_KEY, VAULT_KEY[:-2]}
        wanted = [*sorted(given), {"bytes": base64url(bytes.fromhex(VAULT_KEY[:-2]))}]
        for folder in ("HXSync", "nodes"):
            if found := session.search(folder, wanted):
                bench.fail("state_leak", "a mistyped key of the vault can be read", received=repr(found))


def _wrong(args: Mapping[str, Any], canary: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    yield {**args, "surplus": canary}, "REQUEST_MALFORMED"
    yield {name: value for name, value in args.items() if name != next(iter(args))}, "REQUEST_MALFORMED"
    if "node" in args and "node_id" not in args:
        yield {**args, "node": "nobody"}, "NODE_UNKNOWN"


def _everything(session: SuiteSession) -> Any:
    """What the devices show, by the process that refuses nothing, and the files of the store."""
    files = sorted(row["path"] for row in session.tree("HXSync") if row["kind"] == "file")
    return session.observe("state", worker=1), session.observe("objects", worker=1), files
