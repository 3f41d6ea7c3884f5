"""Run a command. Every error becomes one line on standard error and an exit status of the table."""

from __future__ import annotations

import errno
import logging
import sys
import threading
import traceback
from typing import NoReturn

import typer
from typer.main import get_command

from holdfast import lacked
from holdfast.conformance.cli.commands import app
from holdfast.conformance.cli.console import stop
from holdfast.conformance.cli.group import LoadError
from holdfast.conformance.cli.outermost import was_interrupted
from holdfast.conformance.cli.outermost.streams import lost, say
from holdfast.conformance.cli.places import current_folder
from holdfast.conformance.verdict import Exit, gravest
from holdfast.servers.errors import TOO_LITTLE
from holdfast.servers.janitor import JanitorLostError

# The exception of typer for a wrong command line. click is a part of typer or beside it, depending on the version.
_WRONG_WORDS: type[Exception] = typer.BadParameter.__mro__[2]
# The disk is full or failed: the result is not written.
_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})
# Python's messages where a thread or a library has no memory.
_NO_MEMORY = ("can't start new thread", "cannot allocate memory", "failed to map segment", "can't allocate")


def run() -> int:
    """Run the command that `sys.argv` holds, to its exit status. Output that was lost is never a success."""
    # Libraries report through `logging`; py4j logs a traceback where a signal meets it. What counts is raised besides.
    logging.getLogger().addHandler(logging.NullHandler())
    failed: list[threading.ExceptHookArgs] = []
    threading.excepthook = failed.append
    status = _status()
    if failed and failed[0].exc_value is not None:
        status = _status_of(failed[0].exc_value)
    error = lost()
    if error is None:
        return status
    say(
        f"expected to print the result, but standard output takes no more ({error.strerror or error}); "
        "what was not printed counts as not proven"
    )
    known = {int(code) for code in Exit}
    return int(gravest([Exit(status), Exit.INCOMPLETE])) if status in known else status


def _status() -> int:
    try:
        command = get_command(app)
        # The same as typer by itself, except for the exit statuses and the messages at the end.
        with command.make_context("holdfast", sys.argv[1:]) as context:
            command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    except SystemExit as ended:
        # No command ends so: a library or a contract of another distribution does. It proves nothing.
        say(f"something ended the command with exit {ended.code!r} before it had a result; nothing was proven")
        return ended.code if isinstance(ended.code, int) and ended.code in {*Exit} - {Exit.OK} else int(Exit.KIT)
    except BaseException as error:
        return _status_of(error)
    return int(Exit.OK)


def _status_of(error: BaseException) -> int:
    """Report the error, and return the exit status."""
    try:
        if isinstance(error, _WRONG_WORDS):
            _wrong_words(error)
        _stop_for(error)
    except typer.Exit as ended:
        return ended.exit_code
    except MemoryError:
        say("there is not enough memory; nothing was proven")
        return int(Exit.KIT)


def _stop_for(error: BaseException) -> NoReturn:
    if isinstance(error, JanitorLostError):
        stop(Exit.KIT, str(error))
    if isinstance(error, KeyboardInterrupt | typer.Abort) or was_interrupted():
        stop(Exit.INCOMPLETE, "interrupted; nothing was proven")
    if isinstance(error, MemoryError) or any(words in str(error).lower() for words in _NO_MEMORY):
        raise MemoryError
    if said := lacked(error):
        stop(Exit.USAGE, f"{said}; nothing was proven")
    if isinstance(error, LoadError):
        stop(Exit.KIT, f"the kit cannot be loaded ({error}); is there memory enough, and is it whole?")
    if isinstance(error, OSError):
        what = error.filename if isinstance(error.filename, str) else "a file"
        why = error.strerror or str(error)
        if error.errno in TOO_LITTLE:
            stop(Exit.KIT, f"expected the machine to have room for the kit, got: {why}; nothing was proven")
        if error.errno in _DISK:
            stop(Exit.INCOMPLETE, f"{what} cannot be written: {why}; nothing was proven. Make room and run it again")
        if isinstance(error.filename, str) or not current_folder():
            where = what if isinstance(error.filename, str) else "the working directory"
            stop(Exit.USAGE, f"{where} cannot be used: {why}; name a place that is there and that you may use")
    # A defect of the kit must not be taken for a result about the adapter.
    for part in traceback.format_exception(error):
        for line in part.splitlines():
            say(line, who="")
    stop(Exit.KIT, "this is a fault of the kit itself, please report it")


def _wrong_words(error: Exception) -> NoReturn:
    """Unexpected arguments on the command line."""
    context = getattr(error, "ctx", None)
    # A list of choices comes on lines of its own.
    said = " ".join(getattr(error, "format_message", error.__str__)().split())
    if option := getattr(error, "option_name", ""):
        from holdfast.specs.errors import meant

        known = (
            [name for each in context.command.params for name in (*each.opts, *each.secondary_opts)]
            if context is not None
            else []
        )
        said = f"no such option: {option}{meant(option, known)}"
    path = "holdfast" if context is None else context.command_path
    if type(error).__name__ == "NoArgsIsHelpError":
        raise typer.Exit(int(Exit.USAGE))
    stop(Exit.USAGE, f"{said.rstrip('.')}; `{path} --help` describes what is expected")
