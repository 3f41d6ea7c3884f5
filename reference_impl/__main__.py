"""The command line of the reference, run as `python -P -m`.

`adapter`, `frames`, `serve`, `launch`, `provision`, `mutants`, `sites`, `forkserver`, and what contracts have for
operators.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from holdfast import lacked
from holdfast.reference_impl.registry import Deferred, contract_names, imported, operators, part_of

_PROGRAM = "python -m holdfast.reference_impl"
# sysexits.h EX_USAGE.
_USAGE = 64
_FAILED = 1
_INTERRUPTED = 12
# See `tracing.install`.
_TRACE = "HOLDFAST_TRACE"
# The profiles of jcs, the only contract with frames. They are a constant, because reading the contract is slow.
_PROFILES = ("core", "i-json-strict", "safe-int")


def _adapter(options: argparse.Namespace) -> None:
    # Imported modules stay in use. Garbage collection after each 700 new objects takes a tenth of a start.
    gc.set_threshold(100_000)
    from holdfast.reference_impl.adapter import serve_stdio

    serve_stdio({name: Deferred(name, options.mutant) for name in contract_names()})
    # Every session is closed. An orderly end of the interpreter would take another tenth.
    sys.stderr.flush()
    os._exit(0)


def _frames(options: argparse.Namespace) -> None:
    from holdfast.reference_impl.jcs.frames import serve
    from holdfast.reference_impl.jcs.terms import Profile

    try:
        serve(Profile(options.profile), sys.stdin.buffer, sys.stdout.buffer)
    except Exception:  # the frames do not describe the error, so the whole trace goes to the log
        traceback.print_exc()
        raise


def _serve(options: argparse.Namespace) -> None:
    from holdfast.reference_impl.over_http import serve

    serve({name: Deferred(name) for name in options.contract or contract_names()}, options.port)


def _launch(_options: argparse.Namespace) -> None:
    from holdfast.servers.serving import Launched, LaunchRequest, run

    def start(request: LaunchRequest) -> Launched:
        found = imported(request.contract, "launch")
        if found is None:
            return Launched()
        launched: Launched = found.launch(request.config, parent=Path(request.folder), stores=request.stores)
        return launched

    run(start)


def _provision(options: argparse.Namespace) -> None:
    demo: Any = imported(options.contract, "demo")
    for line in demo.provision(dsn=options.dsn, folder=options.sqlite, writer=options.writer):
        print(line)


def _mutants(options: argparse.Namespace) -> None:
    from holdfast.reference_impl.altered import problem_of
    from holdfast.specs.mutants import load_mutants

    chosen = options.contract or contract_names()
    planted = [f"{name}/{each.name}" for name in chosen for each in load_mutants(name).planted]
    if problems := [problem for each in planted if (problem := problem_of(each))]:
        raise ValueError("; ".join(problems))
    listed = [
        {
            "name": each.name,
            "contract": name,
            "title": each.title,
            "store": declared.store_of(each),
            "must_fail": each.must_fail,
            "faults": each.faults,
        }
        for name in chosen
        for declared in (load_mutants(name),)
        for each in declared.mutants
    ]
    if options.json:
        print(json.dumps({"mutants": listed}, indent=1))
        return
    for line in listed:
        print(f"{line['name']:<36} {line['title']} [{', '.join(line['must_fail'])}]")


def _sites(options: argparse.Namespace) -> None:
    import msgspec

    from holdfast.reference_impl.automatic.sites import files_of, replaced_by_bugs, sites_of

    lines = {file: path.read_bytes().count(b"\n") + 1 for file, path in files_of(options.contract).items()}
    print(json.dumps({"contract": options.contract, "files": lines, "bugs": replaced_by_bugs(options.contract)}))
    for site in sites_of(options.contract):
        print(msgspec.json.encode(site).decode())


def _forkserver(options: argparse.Namespace) -> None:
    from holdfast.reference_impl.registry import warm
    from holdfast.servers.forkserver import serve

    # A reference that is changed at import has to be imported by each fork.
    for name in options.contract or contract_names():
        warm(name, keep=options.keep)
    serve(options.control, main)


def _mutant(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mutant", metavar="NAME", help="with this planted bug")


def _profile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", choices=_PROFILES, default=_PROFILES[0])


def _contract(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--contract", choices=contract_names(), required=True)


def _control(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--contract", choices=contract_names(), action="append", help="repeat for more; all by default")
    parser.add_argument("--keep", action="store_true", help="fork the reference as it is, with no further change")
    _mutant(parser)
    parser.add_argument("--control", type=int, required=True, metavar="FD", help="the socket of the kit")


def _address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--contract", choices=contract_names(), action="append", help="repeat for more; all by default")
    parser.add_argument("--port", type=int, default=os.environ.get("PORT", "8000"), help="on the loopback")


def _surface(parser: argparse.ArgumentParser) -> None:
    provisioned = [name for name in contract_names() if part_of(name, "demo") is not None]
    parser.add_argument("--contract", choices=provisioned, default=provisioned[0])
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--dsn", help="in this PostgreSQL database")
    where.add_argument("--sqlite", type=Path, metavar="PATH", help="as two database files in this folder")
    parser.add_argument("--writer", default="holdfast_registrar", help="role that may read and append (PostgreSQL)")


def _listing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--contract", choices=contract_names(), action="append", help="repeat for more; all by default")
    parser.add_argument("--json", action="store_true")


class _Command(NamedTuple):
    run: Callable[[argparse.Namespace], None]
    options: Callable[[argparse.ArgumentParser], None]
    text: str


_COMMANDS: Mapping[str, _Command] = {
    "adapter": _Command(_adapter, _mutant, "Speak adapter protocol v1 on standard input and output."),
    "frames": _Command(
        _frames, _profile, "Canonicalise the documents on standard input, frame by frame (contract jcs)."
    ),
    "launch": _Command(_launch, _mutant, "Provision what one JSON line on standard input asks for, until end of file."),
    "serve": _Command(_serve, _address, "Speak adapter protocol v1 over HTTP on the loopback."),
    "provision": _Command(_provision, _surface, "Make the demo surface, explicitly; never overwrites one."),
    "mutants": _Command(_mutants, _listing, "List the planted bugs; each of their patches has to fit."),
    "sites": _Command(_sites, _contract, "List what can be changed in a reference, as JSON lines."),
    "forkserver": _Command(
        _forkserver, _control, "Fork an adapter for each request of the kit, with all imports done."
    ),
}


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """A parser of these arguments. It knows only the command that they begin with, or all commands if there is none.

    An adapter starts for each session of a run. The options of all commands would take a tenth of its start.
    """
    parser = argparse.ArgumentParser(prog=_PROGRAM, description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", prog=_PROGRAM)
    for name in words[:1] if words and words[0] in _COMMANDS else _COMMANDS:
        command = _COMMANDS[name]
        made = commands.add_parser(name, help=command.text, description=command.text)
        made.set_defaults(run=command.run)
        command.options(made)
    if not words or words[0] not in _COMMANDS:
        for name, contract in operators().items():
            # It has a command line and exit statuses of its own, see `main`.
            commands.add_parser(name, help=f"For operators of {contract}.", add_help=False)
    return parser


def _change_imports(words: Sequence[str]) -> None:
    """For mutants: trace what is imported from here on, and change places of it. Raises OSError, KeyError, ValueError.

    Every adapter starts here, so nothing is imported for what is not asked.
    """
    if _TRACE in os.environ:
        from holdfast.reference_impl import tracing

        tracing.install(os.environ[_TRACE])
    if "--mutant" in words:
        from holdfast.reference_impl import altered

        altered.install(words)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, 1 for what failed, 12 if interrupted, 64 for a wrong command line."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        _change_imports(words)
    except KeyError as error:
        print(f"error: {error.args[0]}", file=sys.stderr)
        return _USAGE
    if words and words[0] not in _COMMANDS and words[0] in (known := operators()):
        operate: Any = imported(known[words[0]], "operate")
        status: int = operate.main(words[1:])
        return status
    try:
        options = _parser(words).parse_args(words)
    except SystemExit as ended:
        return _USAGE if ended.code == 2 else 0
    try:
        options.run(options)
        # Output that cannot be written is a failure. It is found here and not when Python ends.
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except KeyError as error:
        print(f"error: {error.args[0]}", file=sys.stderr)
        return _USAGE
    except Exception as error:  # a command line shows one line, not a traceback
        if said := lacked(error):
            print(f"error: {said}", file=sys.stderr)
            return _USAGE
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        if isinstance(error, OSError):
            # The rest of the output would fail again when Python ends.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
