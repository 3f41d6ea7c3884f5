"""The operator's command line: `python -m holdfast.reference_impl hx COMMAND --home DIR`.

Exit status: 0 when it was done, 1 when it was refused (the reason is on standard error), 2 for a wrong command line.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NAME = "hx"
TITLE = "Operate a device of an hx-sync vault: init, publish, import, forget, sync status, verify."
_HOME_VARIABLE = "HOLDFAST_HX_HOME"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m holdfast.reference_impl {NAME}", description=TITLE)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")

    def command(name: str, text: str) -> Any:
        made = commands.add_parser(name, help=text, description=text)
        _home_option(made)
        made.add_argument("--node", metavar="NAME", help="which device, where the folder has several")
        # Options for the conformance kit: its frozen clock, the session's config, and a planted bug.
        made.add_argument("--clock", help=argparse.SUPPRESS)
        made.add_argument("--config", help=argparse.SUPPRESS)
        made.add_argument("--mutant", help=argparse.SUPPRESS)
        return made

    _init_options(command("init", "Make a device, and the store if there is none; never overwrites one."))
    _publish_options(command("publish", "Publish a batch of this device's events, or a file as a blob."))
    command("import", "Import everything from the store.")
    forget = command("forget", "Forget all events since an instant, on every device, for ever.")
    forget.add_argument("--since", required=True, metavar="INSTANT", help="like 2026-01-01T00:00:00Z; included")
    _forget_options(forget)
    sync = command("sync", "With `status`: show what the device has, and what it misses.")
    sync.add_argument("inner", choices=["status"], help="the one command of this group")
    command("verify", "Verify every object in the store; nothing is imported.")
    return parser


def _home_option(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--home",
        type=Path,
        default=os.environ.get(_HOME_VARIABLE),
        required=_HOME_VARIABLE not in os.environ,
        metavar="DIR",
        help=f"the folder of the device; {_HOME_VARIABLE} otherwise",
    )


def _init_options(init: argparse.ArgumentParser) -> None:
    init.add_argument("--store", required=True, metavar="WHERE", help="a folder, or s3://BUCKET/PREFIX")
    init.add_argument("--vault", metavar="UUID", help="the vault to join; a new one otherwise")
    key = init.add_mutually_exclusive_group(required=True)
    key.add_argument("--key-file", type=Path, metavar="FILE", help="64 hexadecimal digits, readable for you alone")
    key.add_argument("--new-key-file", type=Path, metavar="FILE", help="draw a key and write it there")
    key.add_argument("--keyring", action="store_true", help="the key is in the system's keyring")
    key.add_argument("--new-keyring", action="store_true", help="draw a key and put it into the system's keyring")
    key.add_argument("--passphrase-file", type=Path, metavar="FILE", help="make the key of this passphrase (Argon2id)")


def _publish_options(publish: argparse.ArgumentParser) -> None:
    what = publish.add_mutually_exclusive_group(required=True)
    what.add_argument("file", nargs="?", metavar="FILE", help="JSON with events, sessions, artifacts, pins; - is stdin")
    what.add_argument("--blob", type=Path, metavar="FILE", help="publish the bytes of this file")
    what.add_argument("--manifest", action="store_true", help="publish the list of this device's segments")
    publish.add_argument("--segment-id", metavar="UUID", help="the same id is the same segment; new if unset")


def _forget_options(forget: argparse.ArgumentParser) -> None:
    forget.add_argument("--until", metavar="INSTANT", help="included; now otherwise")
    forget.add_argument("--of", metavar="UUID", help="only the events of this node")
    forget.add_argument("--tombstone-id", metavar="UUID", help="the same id is the same tombstone; new if unset")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)
    # Only now, so that a wrong command line is reported at once.
    from holdfast.reference_impl.hx_sync import home
    from holdfast.reference_impl.hx_sync.commands import USAGE, Commands, answered, complain
    from holdfast.reference_impl.hx_sync.keys import KeyInvalidError
    from holdfast.reference_impl.hx_sync.service import Parts
    from holdfast.reference_impl.hx_sync.terms import Reason, RefusedError
    from holdfast.reference_impl.instants import parse_instant
    from holdfast.reference_impl.session import OpenError

    try:
        now = datetime.now(UTC) if options.clock is None else parse_instant(options.clock)
        if options.command == "init":
            return _init(options)
        if options.config is None:
            parts, made = home.opened(options.home)
            commands = Commands(parts, options.node or made, now=now)
        else:
            # Without --node this is no name, and each command refuses it.
            commands = Commands(Parts(options.home, json.loads(options.config)), str(options.node), now=now)
    except KeyInvalidError as error:
        return answered(RefusedError(Reason.KEY_INVALID, str(error)).answer(), str)
    except (OpenError, home.HomeError, ValueError, KeyError) as error:
        return complain(str(error), status=USAGE)
    return commands.run(f"sync {options.inner}" if options.command == "sync" else options.command, options)


def _init(options: argparse.Namespace) -> int:
    from holdfast.reference_impl.hx_sync import home
    from holdfast.reference_impl.hx_sync.commands import answered

    node = options.node or "main"
    return answered(
        home.init(options.home, options, node=node),
        lambda value: f"device {node} {value['node_id']}\nvault {value['vault_id']}",
    )
