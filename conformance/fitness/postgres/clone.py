"""A faithful clone: the live database dumped without its rows, restored beside the live roles, and compared.

`LIKE … INCLUDING ALL` would lose rules, triggers, grants and owners, and would make a valid index of an invalid one.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.conformance.fitness.deadline import Deadline
from holdfast.conformance.fitness.errors import LostError
from holdfast.conformance.fitness.model import Row, Snapshot, Surface
from holdfast.conformance.fitness.policy import CONTRACT
from holdfast.conformance.fitness.postgres import roles
from holdfast.conformance.fitness.postgres.connecting import SLOW_S, Session, holders_of_program
from holdfast.conformance.fitness.postgres.scratch import Scratch
from holdfast.conformance.fitness.postgres.snapshot import take
from holdfast.conformance.fitness.target import HIDDEN, Target
from holdfast.reports.plain import cut
from holdfast.servers.janitor import Janitor
from holdfast.specs.fitness import load_queries
from holdfast.specs.strictjson import canonical

# A database of thousands of relations is dumped in some seconds.
_PROGRAM_S = 120.0
_LOCK_WAIT_S = 5
# How long pg_dump may take to cancel its query, and a server to drop a clone.
_TERMINATE_S, _TIDY_S = 2.0, 20.0
# What a dump leaves out on purpose would be in the way, or cannot be on another server.
_DUMP = ("--schema-only", "--no-tablespaces", "--no-publications", "--no-subscriptions", "--no-security-labels")
_RESTORE = ("--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=0", "--output=/dev/null")
# Servers before it write the text of queries otherwise; what was dumped as that text was restored without an error.
_SHORT_NAMES_SINCE = 160000
_TEXTS = {name: frozenset({"definition"}) for name in ("relations", "views", "rules", "rules_elsewhere")}
_LATE = "the server did not answer it, or it has much to do; look again later, or with a longer --timeout"
# What is reported of a difference: how many rows, and how much of each.
_SHOWN, _ROW_SHOWN = 6, 300


@dataclass(frozen=True, slots=True)
class Clone:
    """A clone that is equal to the live surface. `failed` is what could not be restored and is no part of it.

    `stranger` is a role that exists nowhere else and has what PUBLIC has.
    """

    scratch: Scratch
    database: str
    stranger: str
    failed: tuple[str, ...]

    @property
    def dsn(self) -> str:
        """As the superuser."""
        return self.scratch.dsn_of(self.database)

    def dsn_as(self, role: str) -> str:
        """As one of the live roles."""
        return self.scratch.dsn_of(self.database, user=role)

    @contextmanager
    def opened(self, *sessions: tuple[str, str]) -> Iterator[tuple[Session, ...]]:
        """Sessions by (label, role), closed at the end. Raises LostError."""
        with ExitStack() as stack:
            made = []
            for label, role in sessions:
                try:
                    made.append(Session(label, role, self.dsn_as(role), self.scratch.deadline))
                except psycopg.Error as error:
                    raise LostError(str(error)) from error
                stack.callback(made[-1].close)
            yield tuple(made)


@contextmanager
def clone(
    live: Target, household: roles.Household, surface: Surface, snapshot: Snapshot, scratch: Scratch
) -> Iterator[Clone]:
    """The live database again, without rows, on `scratch`; dropped at the end. Nothing is written to the live one.

    `household` is what was read of its server together with the snapshot. Raises LostError if it cannot be had or is
    not faithful; the text says what is missing.
    """
    # A name that no live role has, and that ends with the clone: it owns nothing.
    stranger = f"holdfast_stranger_{secrets.token_hex(4)}"
    dumped, database = _dump(live, scratch), roles.database_of(household)
    try:
        with scratch.connect() as keeper:
            with _or_lost("roles and database cannot be made again"):
                roles.make(keeper, household)
            made = Clone(scratch, database, stranger, _restore(dumped, database, scratch))
            with (
                _or_lost("the catalogue of the clone cannot be read"),
                closing(scratch.connect(made.dsn)) as connection,
            ):
                observed = take(connection, surface)
            if differences := tuple(_differences(snapshot, observed)):
                failures = f"not restored: {'; '.join(made.failed[:_SHOWN])}; " if made.failed else ""
                raise LostError(f"the clone is not like the live surface: {failures}{'; '.join(differences[:_SHOWN])}")
            with _or_lost("the roles of the clone cannot log in"):
                roles.open_for_login(keeper, household)
                keeper.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(stranger)))
        yield made
    finally:
        # Also when there is no time left: a borrowed server must not keep what was made on it.
        with suppress(psycopg.Error), replace(scratch, deadline=Deadline.after(_TIDY_S)).connect() as keeper:
            roles.drop(keeper, household)
            keeper.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(stranger)))


@contextmanager
def _or_lost(what: str) -> Iterator[None]:
    """An error of the server as a LostError: what it said, without the connection that it was said on."""
    try:
        yield
    except psycopg.Error as error:
        said = error.diag.message_primary or "no answer"
        raise LostError(f"{what}: {type(error).__name__}: {said}") from error


def _dump(live: Target, scratch: Scratch) -> bytes:
    """Everything but rows, by pg_dump in a read-only transaction of its own. Raises LostError."""
    # By this name its session is found on the server.
    name = f"holdfast-{secrets.token_hex(4)}"
    with discreet(live.dsn) as (dsn, environment):
        return _run(
            [
                str(scratch.programs / "pg_dump"),
                *_DUMP,
                f"--lock-wait-timeout={_LOCK_WAIT_S}s",
                f"--dbname={make_conninfo(dsn, application_name=name)}",
            ],
            environment={**os.environ, **environment, **scratch.mark},
            deadline=scratch.deadline,
            inquire=lambda: holders_of_program(live, scratch.deadline, name),
        ).stdout


# How the secrets of a DSN are called in the file that a program reads them from.
_SERVICE = "holdfast"


@contextmanager
def discreet(dsn: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The DSN without secrets, for the arguments of a program, and the environment by which it finds them.

    Every user can read arguments, but not the environment. libpq reads from it the password alone; the other
    secrets stand in a file for this user only, which goes with the block. Raises LostError.
    """
    parts = conninfo_to_dict(dsn)
    found = {name: str(parts.pop(name)) for name in HIDDEN if parts.get(name)}
    password = found.pop("password", None)
    environment = {} if password is None else {"PGPASSWORD": password}
    if not found:
        yield make_conninfo("", **parts), environment
        return
    if parts.get("service") or os.environ.get("PGSERVICE"):
        raise LostError(f"{', '.join(found)} of the DSN cannot stand beside a service; write it into the service file")
    if any(value != value.strip() or not value.isprintable() for value in found.values()):
        raise LostError(f"{', '.join(found)} of the DSN has blanks at its ends or signs that no service file can hold")
    # It holds secrets, so it must not outlive this process, however that ends.
    with Janitor() as janitor:
        folder = janitor.make_folder()
        folder.chmod(0o700)
        path = str(folder / "pg_service.conf")
        lines = [f"[{_SERVICE}]", *(f"{name}={value}" for name, value in found.items()), ""]
        # The folder, too, is for this user only.
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        yield make_conninfo("", **{**parts, "service": _SERVICE}), {**environment, "PGSERVICEFILE": path}


def _restore(dumped: bytes, database: str, scratch: Scratch) -> tuple[str, ...]:
    """Each statement that failed, in the words of psql."""
    command = [str(scratch.programs / "psql"), *_RESTORE, f"--dbname={scratch.dsn_of(database)}"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    said = _run(command, given=dumped, environment={**kept, **scratch.mark}, deadline=scratch.deadline).stderr.decode(
        "utf-8", "replace"
    )
    return tuple(line.partition("ERROR:")[2].strip() for line in said.splitlines() if "ERROR:" in line)


def _run(
    command: list[str],
    *,
    environment: Mapping[str, str],
    deadline: Deadline,
    given: bytes | None = None,
    inquire: Callable[[], str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """A program, with its input and output. `inquire` is asked again and again who is in its way.

    Raises LostError if it fails or is not done in time; then it is gone.
    """
    name, until, inquiry = os.path.basename(command[0]), Deadline.after(deadline.left(_PROGRAM_S)), ""
    allowed = until.left()
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, "LC_ALL": "C"},
        )
    except OSError as error:
        raise LostError(f"{name} cannot be run: {error.strerror}") from error
    try:
        while True:
            try:
                out, said = child.communicate(given, timeout=until.left(SLOW_S))
                break
            except subprocess.TimeoutExpired:
                if not until.left():
                    raise LostError(f"{name} did not end in {allowed:.3g} s; {inquiry or _LATE}") from None
                inquiry = (inquire() if inquire is not None else "") or inquiry
    finally:
        _end(child)
    if child.returncode:
        words = " ".join(said.decode("utf-8", "replace").split())[-500:]
        raise LostError(f"{name} ended with status {child.returncode}: {words}{f'; {inquiry}' if inquiry else ''}")
    return subprocess.CompletedProcess(command, 0, out, said)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a program that still runs: first so that it can cancel what it asked of the server."""
    for end, patience in ((child.terminate, _TERMINATE_S), (child.kill, None)):
        if child.poll() is None:
            end()
            with suppress(subprocess.TimeoutExpired):
                child.wait(timeout=patience)
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def _differences(live: Snapshot, cloned: Snapshot) -> Iterator[str]:
    """What the same queries say otherwise of the two."""
    # Whether both servers write `SELECT a FROM t` where older ones write `SELECT t.a FROM t`.
    alike = all(each.circumstances["server"][0]["number"] >= _SHORT_NAMES_SINCE for each in (live, cloned))
    for query in load_queries(CONTRACT).queries:
        if not query.clone:
            continue
        left_out = frozenset() if alike else _TEXTS.get(query.name, frozenset())
        here, there = (_comparable(query.name, each.structure.get(query.name, ()), left_out) for each in (live, cloned))
        for text in sorted(here - there):
            yield f"{query.name} lacks {cut(text, _ROW_SHOWN)}"
        for text in sorted(there - here):
            yield f"{query.name} has in addition {cut(text, _ROW_SHOWN)}"


def _comparable(query: str, rows: Iterable[Row], left_out: frozenset[str]) -> set[str]:
    """Rows without what a restored one says otherwise, and what means nothing."""
    found = set()
    for row in rows:
        # A dump leaves out where on the disks something lies.
        apart = {*left_out, "tablespace"} & row.keys()
        # Neither an index that was never finished nor what an extension made is dumped; the live catalogue says of them
        # all there is to say.
        if row.get("valid") is False or row.get("extension"):
            continue
        if query == "columns" and row["collation"] == "pg_catalog.default":
            # The scratch server has no locales but C. Under every locale of a database, equal is what has equal bytes.
            apart.add("byte_order")
        if query == "constraints" and row["kind"] != "c":
            # Of an index whether children have it too is said by them; that of a partition is attached later.
            apart.add("no_inherit")
        found.add(canonical({name: row[name] for name in row.keys() - apart}).decode())
    return found
