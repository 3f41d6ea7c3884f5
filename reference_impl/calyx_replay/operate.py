"""The operator's command line: `python -m holdfast.reference_impl calyx COMMAND --root DIR`.

Exit status: 0 when it was done, 1 when it was refused (the reason is on standard error), 2 for a wrong command line.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import stat
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.reference_impl.answers import Answer
    from holdfast.reference_impl.calyx_replay.service import Parts

TITLE = "Operate a calyx-replay mailbox: init, receive, prune, migrate, inspect."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m holdfast.reference_impl calyx", description=TITLE)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")

    def command(name: str, run: Callable[[argparse.Namespace, Parts, datetime], int], text: str) -> Any:
        made = commands.add_parser(name, help=text, description=text)
        made.set_defaults(run=run)
        made.add_argument("--root", type=Path, required=True, metavar="DIR", help="the runtime root of the mailbox")
        # Options for the conformance kit: its frozen clock, the session's config, and a planted bug.
        made.add_argument("--clock", help=argparse.SUPPRESS)
        made.add_argument("--config", default="{}", help=argparse.SUPPRESS)
        made.add_argument("--mutant", help=argparse.SUPPRESS)
        return made

    prune = command("prune", _prune, "Remove records that were first seen longer ago than the retention.")
    command("migrate", _migrate, "Take over what version 0 had seen; its files stay as they are.")
    command("inspect", _inspect, "Show what the mailbox holds and whether it can be used.")
    _more(command, prune)
    return parser


def _more(command: Callable[..., Any], prune: argparse.ArgumentParser) -> None:
    """Commands and an option that the source does not ask for."""
    command("init", _init, "Make the database of a mailbox; never overwrites one.")
    receive = command("receive", _receive, "Receive one envelope from a file, or from standard input.")
    receive.add_argument("file", metavar="FILE", help="the bytes of one envelope; - is standard input")
    text = "instead of the contract's retention"
    prune.add_argument("--retention-hours", type=_retention, dest="args", metavar="H", help=text)


def _retention(text: str) -> dict[str, float]:
    """The arguments of a prune. Raises argparse.ArgumentTypeError."""
    try:
        return {"retention_hours": float(text)}
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number of hours, got {text!r}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as ended:
        # argparse ends with a number.
        return int(str(ended.code))
    # Only now, so that a wrong command line is reported at once.
    from holdfast.reference_impl.calyx_replay.service import Parts
    from holdfast.reference_impl.session import OpenError

    try:
        now, parts = _clock(options.clock), Parts(_root(options), json.loads(options.config))
    except (OpenError, ValueError) as error:
        return _misused(str(error))
    status: int = options.run(options, parts, now)
    return status


def _clock(text: str | None) -> datetime:
    if text is None:
        return datetime.now(UTC)
    from holdfast.reference_impl.instants import parse_instant

    return parse_instant(text)


def _root(options: argparse.Namespace) -> Path:
    """The runtime root. Raises ValueError."""
    root: Path = options.root
    if not root.is_dir():
        raise ValueError(f"expected a folder as --root, got {str(root)!r}; make it first")
    return root


def _misused(text: str) -> int:
    print(f"error: {text}", file=sys.stderr)
    return 2


def _complain(text: str) -> int:
    print(f"error: {text}", file=sys.stderr)
    return 1


def _to_do(reason: str) -> str:
    """What a person does then."""
    return {
        "ENVELOPE_MALFORMED": "ask the sender for the canonical encoding",
        "TIMESTAMP_UNREADABLE": "ask the sender for a timestamp in UTC, like 2026-01-01T00:00:00Z",
        "SIGNATURE_INVALID": "do not trust the sender that the envelope names",
        "TIMESTAMP_OUT_OF_WINDOW": "compare the clocks; an old envelope is sent anew by its sender",
        "STORE_UNAVAILABLE": "see `calyx inspect`; restore the database from a backup, or make one with `calyx init`",
        "MSG_ID_BLOCKED": "wait until the window is over; the sender then sends the mail anew",
        "REPLAY_UNPROVABLE": "compare the clock of this machine: it has gone back",
        "REPLAY_DUPLICATE": "nothing: it was delivered before",
        "RETENTION_TOO_SHORT": "choose a longer retention",
        "NOTHING_TO_MIGRATE": "nothing, or put version 0's seen_cache.json where the contract has it",
        "MIGRATION_MALFORMED": "mend or remove the file that is named, and run it again",
    }.get(reason, "see --help")


def _of(answer: Answer) -> str:
    """What to say of an operation that was refused, or that may not have been done."""
    from holdfast.reference_impl.answers import Refused

    if isinstance(answer, Refused):
        return f"{answer.reason}: {answer.detail or 'refused'}; to do: {_to_do(answer.reason)}"
    return f"it is unknown whether it was done: {answer}; to do: run it again, which is safe"


def _answered(answer: Answer, tell: Callable[[Any], str]) -> int:
    from holdfast.reference_impl.answers import Accepted

    if isinstance(answer, Accepted):
        print(tell(answer.value))
        return 0
    return _complain(_of(answer))


def _init(options: argparse.Namespace, parts: Parts, now: datetime) -> int:  # noqa: ARG001 - as all commands
    from holdfast.reference_impl.calyx_replay.provision import ProvisionError, make

    try:
        make(parts.store.location)
    except ProvisionError as error:
        return _complain(str(error))
    print(f"made {parts.store.location.database}")
    return 0


def _receive(options: argparse.Namespace, parts: Parts, now: datetime) -> int:
    try:
        raw = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
    except OSError as error:
        return _misused(f"expected a readable file with one envelope: {error}")
    return _answered(
        parts.mailbox.receive(raw, now=now), lambda value: f"delivered {value['msg_id']} {value['replay_key']}"
    )


def _prune(options: argparse.Namespace, parts: Parts, now: datetime) -> int:
    return _answered(
        parts.pruning.prune(options.args or {}, now=now),
        lambda value: f"removed {value['removed']}, kept {value['kept']}, unreadable {value['unreadable']}",
    )


def _migrate(options: argparse.Namespace, parts: Parts, now: datetime) -> int:  # noqa: ARG001 - as all commands
    return _answered(parts.migration.migrate(now=now), _taken_over)


def _taken_over(value: Any) -> str:
    """What a migration did, for people."""
    lines = [f"listed {value['listed']}, migrated {value['migrated']}, present {value['present']}"]
    return "\n".join([*lines, *(f"no envelope, blocked for now: {msg_id!a}" for msg_id in value["unmigrated"])])


def _inspect(options: argparse.Namespace, parts: Parts, now: datetime) -> int:  # noqa: ARG001 - as all commands
    from holdfast.reference_impl.calyx_replay.terms import Purpose, Reason
    from holdfast.reference_impl.sqlite import StoreError
    from holdfast.reference_impl.terms import RefusedError

    try:
        with parts.store.reading(Purpose.OBSERVE) as connection:
            _show(parts, connection)
    except (StoreError, sqlite3.Error) as error:
        return _complain(_of(RefusedError(Reason.STORE_UNAVAILABLE, str(error)).answer()))
    return 0


def _show(parts: Parts, connection: sqlite3.Connection) -> None:
    """Show what the mailbox holds. Raises StoreError, sqlite3.Error."""
    store, delivered = parts.store, len(parts.store.deliveries(connection))
    rows, unreadable = store.counts(connection)
    state, files = store.state(connection), [path for path in store.location.files() if path.exists()]
    lines = [
        f"database {store.location.database}",
        *(f"mode {stat.S_IMODE(path.stat().st_mode):04o} {path.name}" for path in files),
        f"journal mode {store.pragmas(connection)['journal_mode']}, integrity ok",
        f"records {rows}, of these with an unreadable seen_at {unreadable}",
        f"delivered {delivered}",
        f"automatic prunes {state.automatic}, the last {state.last_automatic or 'never'}",
        f"pruned before {state.pruned_before or 'never'}",
    ]
    print("\n".join(lines))
