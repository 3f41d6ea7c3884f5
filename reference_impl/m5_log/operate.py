"""The operator's command line: `python -m holdfast.reference_impl m5 COMMAND --root DIR`.

Exit status: 0 when it was done, 1 when it was refused (the reason is on standard error), 2 for a wrong command line.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.reference_impl.m5_log.service import Parts
    from holdfast.reference_impl.m5_log.state import State

TITLE = "Operate an m5-log store: append, replay, checkpoints, verification, export."
_DONE, _REFUSED, _USAGE = 0, 1, 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m holdfast.reference_impl m5", description=TITLE)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")

    def command(name: str, run: Callable[[argparse.Namespace, Parts], int], text: str) -> Any:
        made = commands.add_parser(name, help=text, description=text)
        made.set_defaults(run=run)
        made.add_argument("--root", type=Path, required=True, metavar="DIR", help="the folder above the store")
        # Options for the conformance kit: the session's config, and a planted bug.
        made.add_argument("--config", default="{}", help=argparse.SUPPRESS)
        made.add_argument("--mutant", help=argparse.SUPPRESS)
        return made

    command("init", _init, "Make an empty store; never overwrites one.")
    append = command("op-append", _append, "Append every operation of a file, or none.")
    append.add_argument("file", type=Path, metavar="FILE", help="a CBOR array of byte strings, each an operation")
    replay = command("replay-from-store", _replay, "Print the state by a replay.")
    replay.add_argument("--from", dest="origin", choices=["genesis", "latest"], default="latest")
    command("checkpoint-create", _checkpoint_create, "Store the state as a checkpoint; prints its id.")
    command("checkpoint-list", _checkpoint_list, "Print id and topological index of every checkpoint.")
    load = command("checkpoint-load", _checkpoint_load, "Print the state of a checkpoint.")
    load.add_argument("checkpoint_id", type=int, metavar="ID")
    command("verify-store", _verify, "Check every row of the store; status 1 if anything is wrong.")
    command("dump-state-json", _dump, "Print the state by a replay from genesis.")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as ended:
        return _USAGE if ended.code else _DONE
    # Only now, so that a wrong command line is reported at once.
    from holdfast.reference_impl.m5_log.service import Parts
    from holdfast.reference_impl.m5_log.terms import UncertainError
    from holdfast.reference_impl.session import OpenError
    from holdfast.reference_impl.terms import RefusedError

    try:
        if not options.root.is_dir():
            return _complain(f"expected a folder as --root, got {str(options.root)!r}; make it first", _USAGE)
        parts = Parts(options.root, json.loads(options.config))
    except (OpenError, ValueError, KeyError) as error:
        return _complain(str(error), _USAGE)
    try:
        status: int = options.run(options, parts)
    except RefusedError as error:
        return _complain(f"{error}; to do: {_to_do(error.reason.value)}")
    except UncertainError as error:
        return _complain(f"it is unknown whether it was done: {error}; to do: run it again, which is safe")
    finally:
        parts.store.release()
    return status


def _complain(text: str, status: int = _REFUSED) -> int:
    print(f"error: {text}", file=sys.stderr)
    return status


def _to_do(reason: str) -> str:
    """What a person does then."""
    return {
        "NON_CANONICAL": "write the file with a deterministic encoder (RFC 8949 section 4.2.1)",
        "OP_MALFORMED": "compare the operation with docs/methods/m5-log.md",
        "SIGNATURE_INVALID": "do not trust who sent the file",
        "CREDENTIAL_MALFORMED": "ask the issuer for the credential in its one spelling",
        "CHECKPOINT_UNKNOWN": "see `m5 checkpoint-list`",
        "CHECKPOINT_STALE": "nothing: a replay starts from genesis",
        "CHECKPOINT_DAMAGED": "make a new one; a replay starts from genesis",
        "SCHEMA_UNSUPPORTED": "use the version of the program that wrote the store",
        "STORE_UNAVAILABLE": "see `m5 verify-store`; end the process that has it open, or restore it from a copy",
    }.get(reason, "see --help")


def _print_state(state: State) -> None:
    """UTF-8 whatever the locale: another encoding would be other bytes of the same state, or none."""
    from holdfast.reference_impl.m5_log.state import json_of

    sys.stdout.flush()
    sys.stdout.buffer.write(json_of(state).encode("utf-8") + b"\n")


def _init(options: argparse.Namespace, parts: Parts) -> int:  # noqa: ARG001 - as all commands
    try:
        parts.store.opening.make()
    except OSError as error:
        return _complain(f"the store cannot be made: {error}")
    print(f"made {parts.store.location.database}")
    return _DONE


def _append(options: argparse.Namespace, parts: Parts) -> int:
    try:
        raw = options.file.read_bytes()
    except OSError as error:
        return _complain(f"expected a readable file with operations: {error}", _USAGE)
    for put in parts.log.put_file(raw):
        print(put.op_id.hex(), "appended" if put.new else "present", "pending" if put.pending else "applied")
    return _DONE


def _replay(options: argparse.Namespace, parts: Parts) -> int:
    with parts.store.reading() as opened:
        if options.origin == "genesis":
            state = parts.replay.full(opened)
        else:
            replayed = parts.replay.latest(opened)
            state = replayed.state
            for why in replayed.passed_over:
                print(f"note: not used: {why}", file=sys.stderr)
    _print_state(state)
    return _DONE


def _checkpoint_create(options: argparse.Namespace, parts: Parts) -> int:  # noqa: ARG001 - as all commands
    print(parts.log.checkpoint_create().checkpoint_id)
    return _DONE


def _checkpoint_list(options: argparse.Namespace, parts: Parts) -> int:  # noqa: ARG001 - as all commands
    from holdfast.reference_impl.m5_log import checkpoints

    with parts.store.reading() as opened:
        for checkpoint_id, row in checkpoints.listed(opened.database):
            print(checkpoint_id, checkpoints.decode(checkpoint_id, row).topo_index)
    return _DONE


def _checkpoint_load(options: argparse.Namespace, parts: Parts) -> int:
    _print_state(parts.log.checkpoint_load(options.checkpoint_id))
    return _DONE


def _verify(options: argparse.Namespace, parts: Parts) -> int:  # noqa: ARG001 - as all commands
    report = parts.verify.run()
    for problem in report.problems:
        print(f"{problem.family} {problem.key.hex() or '-'}: {problem.text}")
    print(f"{report.operations} operations, {report.pending} pending, {len(report.problems)} problems")
    return _REFUSED if report.problems else _DONE


def _dump(options: argparse.Namespace, parts: Parts) -> int:  # noqa: ARG001 - as all commands
    with parts.store.reading() as opened:
        _print_state(parts.replay.full(opened))
    return _DONE
