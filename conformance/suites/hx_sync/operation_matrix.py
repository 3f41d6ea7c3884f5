"""hx-sync: every operation of the contract under the same attacks, so that none is hardly attacked.

The steps stand here, one for each operation and attack. What is due follows from the pure model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import base64url
from holdfast.conformance.suites.hx_sync.checks import enroll, import_one, place
from holdfast.conformance.suites.hx_sync.generate import Step
from holdfast.conformance.suites.hx_sync.permutations import Made, ObjectBuilder, at
from holdfast.conformance.suites.hx_sync.runner import playing
from holdfast.vectors.hx_sync.objects.drafts import VAULT_KEY

# Every operation and command while the index of its device, or the store, is gone, damaged or another.
#
# It is taken away under running processes, and they are asked; then they are started on what is left, and asked again.
# What may be answered stands in `_INDEX` and `_STORE`. What is refused has changed nothing, and once what was taken is
# back every device shows what it had shown.


_COMMAND = "command_line"
_COMMANDS: Mapping[str, Sequence[str]] = {
    "command_line forget": ("forget", "--since", at(500)),
    "command_line import": ("import",),
    "command_line sync": ("sync", "status"),
    "command_line verify": ("verify",),
}
# What is told beside the effects of operations: a command was done, or it was not.
_UNAVAILABLE, _DONE, _FAILED = "STORE_UNAVAILABLE", "done", "failed"
_WRITING = ("publish", "publish_blob", "publish_manifest", "put")

# What becomes of every index, and what may be answered then beside a refusal. A device may be known without its index,
# so what is accepted is held against the store. An index that was deleted may be made anew, one that is damaged not.
_INDEX: Mapping[str, Mapping[str, frozenset[str]]] = {
    how: {
        **dict.fromkeys(_WRITING, frozenset({"new", "prior"})),
        "enroll": frozenset({"new"} if how == "unlinked" else {"prior"}),
        "command_line verify": frozenset({_DONE}),
    }
    for how in ("unlinked", "cut", "of another format")
}
# How a store is lost: to what cannot be listed, and to another one.
_FILE, _ANOTHER = "a file", "of another vault"
# The same of the store. If its folder is empty, it may be taken for a store into which no device has published.
_ANY = frozenset({"new", "prior"})
_STORE: Mapping[str, Mapping[str, frozenset[str]]] = {
    _FILE: {
        "enroll": _ANY,
        "command_line sync": frozenset({_DONE}),
        "command_line verify": frozenset({_DONE}),
    },
    **{
        how: {
            **dict.fromkeys((*_WRITING, "forget", "rebuild", "enroll"), _ANY),
            "import_object": frozenset({"OBJECT_MISSING"}),
            "import": frozenset({"prior"}),
            **dict.fromkeys(_COMMANDS, frozenset({_DONE})),
        }
        for how in ("empty", _ANOTHER)
    },
}
# A folder of the harness, with what comes in the place of the store.
_BESIDE = "beside"


def asked_of(world: ObjectBuilder, node: str, label: str) -> dict[str, Mapping[str, Any]]:
    """The arguments of each operation for a device that is there, with objects of their own."""
    published = world.segment(node, f"{label} published", world.event(node, "s1", 1, at(1), label))
    blob, window = world.blob(f"{label} blob"), world.tombstone(f"{label} window", at(500), at(501))
    lying, own = lying_of(world, label), world.segment("z", f"{label} put", world.event("z", "s3", 1, at(2), label))
    return {
        "publish": published.args,
        "publish_blob": {**blob.args, "node": node},
        "publish_manifest": {"node": node},
        "forget": {**window.args, "node": node},
        "import_object": {"node": node, "key": lying.key},
        "import": {"node": node},
        "rebuild": {"node": node},
        "put": {"key": own.key, "bytes": base64url(own.data)},
        "enroll": {"node": node, "node_id": world.node_id(node)},
    }


def lying_of(world: ObjectBuilder, label: str) -> Made:
    """What has to lie in the store for `import_object`."""
    return world.segment("z", f"{label} lying", world.event("z", "s2", 1, at(2), label))


@dataclass(frozen=True, slots=True)
class _Call:
    """One row of the matrix, for the device that is its own: it is asked for, and nothing else is of that device."""

    row: str
    node: str
    args: Mapping[str, Any]


@dataclass(slots=True)
class _Round:
    """One way in which something is lost: what may be answered beside a refusal, and who was refused all along."""

    how: str
    due: Mapping[str, frozenset[str]]
    refused: list[_Call]


class _Losing:
    """A session with a device for each row, each of which has imported something."""

    def __init__(self, bench: Bench, session: SuiteSession) -> None:
        self._bench, self._session = bench, session
        # Of the same label as what `enroll` makes ids of.
        self._world = ObjectBuilder(bench, session, "nodes")
        rows = [*asked_of(self._world, "a", ""), *(_COMMANDS if _COMMAND not in bench.not_claimed else ())]
        self._rows = {f"n{number}": row for number, row in enumerate(rows)}
        for node in self._rows:
            enroll(bench, session, node)
            known = self.known(node)
            place(session, [known])
            import_one(bench, session, node, known.key)

    @property
    def nodes(self) -> list[str]:
        """All devices that have a row."""
        return [*self._rows]

    def known(self, node: str) -> Made:
        """What a device has imported before anything is lost."""
        return self._world.segment("z", f"known {node}", self._world.event("z", node, 1, at(3)))

    def node_id(self, node: str) -> str:
        """The id of a device."""
        return self._world.node_id(node)

    def calls(self, how: str) -> list[_Call]:
        """A call of each row, with something in the store for each to import."""
        made = []
        for node, row in self._rows.items():
            asked = asked_of(self._world, node, f"{how} {node}")
            place(self._session, [lying_of(self._world, f"{how} {node}")])
            args = {"node": node, "arguments": list(_COMMANDS[row])} if row in _COMMANDS else asked[row]
            made.append(_Call(row, node, args))
        return made

    def ask(self, this: _Round, calls: Sequence[_Call], worker: int) -> None:
        """Call each, and hold what is said against what is due. What another device shows stays."""
        session, before = self._session, self._readable(this)
        for call in calls:
            came = self._said(call, worker)
            accepted = came not in (_UNAVAILABLE, _FAILED, "OBJECT_MISSING")
            if came not in (_UNAVAILABLE, _FAILED, *this.due.get(call.row, ())):
                verdict = "fail_open" if accepted else "wrong_reason"
                due = " or ".join(
                    [_FAILED if call.row in _COMMANDS else _UNAVAILABLE, *sorted(this.due.get(call.row, ()))]
                )
                told = f"{call.row} while what it needs is {this.how}"
                self._bench.weigh(verdict, told, expected=due, received=f"{came} by {call.node}")
            if accepted and call.row in _WRITING:
                key = call.args["key"] if call.row == "put" else self._value["key"]
                if not session.file(key)["exists"]:
                    self._bench.fail("lost_durability", f"{call.row} was accepted, and nothing lies at its key")
            after = self._readable(this)
            if accepted:
                this.refused = [each for each in this.refused if each is not call]
            elif after != before:
                received = repr(after)[:600]
                self._bench.fail("state_leak", f"{call.row} was refused and left something", received=received)
            before = after

    def _said(self, call: _Call, worker: int) -> str:
        if call.row not in _COMMANDS:
            answer = self._session.call(call.row, call.args, worker)
            self._value = answer.value or {}
            return answer.said
        _, told = self._session.unless_fault(lambda: self._session.provoke(_COMMAND, call.args, worker))
        if told and VAULT_KEY in told["output"]:
            self._bench.fail("fail_open", f"{call.row} prints the key of the vault", received=told["output"])
        return _DONE if told and told["status"] == 0 else _FAILED

    def _readable(self, this: _Round) -> Any:
        """The files of the store, and what a device shows that is asked for nothing; None where it shows nothing."""
        found = self._session.tree("HXSync") if this.how != _FILE else [self._session.file("HXSync")]
        files = [row for row in found if row["kind"] == "file"]
        return files, self._session.sample("state", {"node": "a"}, 0)

    def started_again(self) -> bool:
        """Kill all processes and start them on what is there; False where one refuses to start on it."""
        self._session.kill(*range(self._session.workers))
        return self._session.starts_on_what_is_there()

    def back(self, path: str) -> None:
        """Put back what was taken, under no process."""
        self._session.kill(*range(self._session.workers))
        self._session.copy(f"{_BESIDE}/{path}", path)
        self._session.reopen(*range(self._session.workers))

    def shows(self, node: str) -> Any:
        """What one device shows."""
        return self._session.observe("state", {"node": node})

    def same(self, nodes: Sequence[str], before: Mapping[str, Any], told: str) -> None:
        """These devices show what they had shown."""
        for node in nodes:
            after = self.shows(node)
            if after != before[node]:
                lost = len(after["events"]) < len(before[node]["events"])
                verdict = "lost_durability" if lost else "state_leak"
                expected, received = repr(before[node])[:600], repr(after)[:600]
                self._bench.fail(
                    verdict, f"{told}: {node}, of {self._rows[node]}", expected=expected, received=received
                )

    def undisclosed(self) -> None:
        """Neither the key of the vault nor what an event says can be read after any refusal."""
        for folder, canaries in (("HXSync", [VAULT_KEY, "nodes unlinked"]), ("nodes", [VAULT_KEY])):
            if found := self._session.search(folder, canaries):
                self._bench.fail("fail_open", "what was refused can be read", received=repr(found))

    def done(self, calls: Sequence[_Call]) -> None:
        """Each is done now."""
        for call in calls:
            came = self._said(call, 0)
            if came not in (*_ANY, _DONE):
                told = f"{call.row}, with all that it needs again"
                self._bench.fail("over_refusal", told, expected="accepted", received=f"{came} by {call.node}")


@clause("HX-T4", "HX-P1", "HX-CLI-1", whole=True, written=True)
def test_no_operation_takes_a_lost_index_for_an_empty_one(bench: Bench) -> None:
    """Each index is unlinked, cut or replaced, under running processes and before they start, and later put back."""
    with bench.session(workers=2) as session:
        losing = _Losing(bench, session)
        for how, due in _INDEX.items():
            calls = losing.calls(how)
            # Now every process has each index open.
            before = {node: losing.shows(node) for node in losing.nodes}
            session.observe("state", worker=1)
            session.copy("nodes", f"{_BESIDE}/nodes")
            this = _Round(how, due, list(calls))
            for node in losing.nodes:
                _take(session, node, how)
            # Commands are processes of their own, while those that have the indexes open go on.
            losing.ask(this, calls, worker=1)
            for call in [call for call in calls if call not in this.refused]:
                # One that was made anew is taken again.
                _take(session, call.node, how)
            if losing.started_again():
                losing.ask(this, [call for call in calls if call.row not in _COMMANDS], worker=1)
            if how == "unlinked":
                _made_again(bench, session, losing, this, before)
            losing.undisclosed()
            losing.back("nodes")
            losing.same(losing.nodes, before, f"an index that was {how} is back")
            losing.done([call for call in calls if call.row not in _COMMANDS])


def _made_again(bench: Bench, session: SuiteSession, losing: _Losing, this: _Round, before: Mapping[str, Any]) -> None:
    """`enroll` makes a deleted index anew after any refusal without it, and an import fills it with the same."""
    for call in this.refused:
        answer = session.call("enroll", {"node": call.node, "node_id": losing.node_id(call.node)})
        told = f"a lost index is made again, after {call.row} was refused without it"
        bench.must_be(answer, "accepted", told)
        import_one(bench, session, call.node, losing.known(call.node).key)
    losing.same([call.node for call in this.refused], before, "after its index was made again")


def _take(session: SuiteSession, node: str, how: str) -> None:
    folder = f"nodes/{node}"
    for found in session.tree(folder):
        path = found["path"]
        if how == "unlinked" and path.startswith(f"{folder}/index.db"):
            session.remove(path)
        elif path == f"{folder}/index.db":
            if how == "cut":
                session.cut(path, 100)
            else:
                session.place(path, b"This is no index. " * 512)


@clause("HX-T4", "HX-P1", "HX-CLI-1", whole=True, written=True)
def test_no_operation_takes_a_lost_store_for_another(bench: Bench) -> None:
    """The store is emptied, a plain file or that of another vault, under running processes and before they start."""
    with bench.session(workers=2) as session:
        losing = _Losing(bench, session)
        other = "HXSync/vaults/0e0e0e0e-0e0e-4e0e-8e0e-0e0e0e0e0e0e/objects/segments"
        session.place(f"{_BESIDE}/{_ANOTHER}/{other.removeprefix('HXSync/')}/0.hxseg", b"HXOBJ")
        session.place(f"{_BESIDE}/{_FILE}", b"This is no store.")
        session.place(f"{_BESIDE}/empty/gone", b"")
        session.remove(f"{_BESIDE}/empty/gone")
        for how, due in _STORE.items():
            calls = losing.calls(how)
            before = {node: losing.shows(node) for node in losing.nodes}
            session.copy("HXSync", f"{_BESIDE}/HXSync")
            this = _Round(how, due, list(calls))
            session.copy(f"{_BESIDE}/{how}", "HXSync")
            losing.ask(this, [call for call in calls if call.row not in _COMMANDS], worker=1)
            if losing.started_again():
                # A command costs a start, and what is another vault's is empty to it as well.
                asked = [call for call in calls if how != _ANOTHER or call.row not in _COMMANDS]
                losing.ask(this, asked, worker=1)
            losing.back("HXSync")
            losing.undisclosed()
            losing.same([call.node for call in this.refused], before, f"a store that was {how} is back")
            losing.done([call for call in calls if call.row not in _COMMANDS])


_T = TypeVar("_T")
# Each operation by the step that asks for it. Who imports is another device than the one that publishes.
EACH: Mapping[str, Step] = {
    "publish": Step("publish", draft=1),
    "publish_blob": Step("publish_blob", draft=2),
    "put": Step("put", draft=3),
    "import_object": Step("import one", node="b"),
    "import": Step("import", node="b"),
    "publish_manifest": Step("manifest"),
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
    Step("import one", node="b"),
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
        asked = {**asked_of(world, "a", "refused"), "enroll": {"node": "d", "node_id": world.node_id("d")}}
        before = _everything(session)
        for method, args in asked.items():
            for wrong, reason in _wrong(args, canary):
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
        asked = asked_of(ObjectBuilder(bench, session, "mistyped"), "a", "mistyped")
        for method, args in asked.items():
            session.call(method, args)
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
