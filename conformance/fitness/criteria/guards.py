"""(f) rows, once there, stay as they are: every way of a role to a privilege, what owners can do, what was tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.atomic import event_triggers, server_setting, setting_of
from holdfast.conformance.fitness.criteria.files import rights
from holdfast.conformance.fitness.criteria.judging import NO_PRIVILEGE, Judging, NoRows, guarded, is_refusal
from holdfast.conformance.fitness.criteria.tables import (
    OFF,
    VERBS,
    apart,
    guarded_by_triggers,
    only_raises,
    plain,
    there,
)
from holdfast.conformance.fitness.model import SUFFIX, Part, ProbeAnswer, RelationName, Row
from holdfast.conformance.fitness.postgres.catalogue import DATABASE_OWNER, Roles, UnreadError, name_of, text_of

_CHANGES = ("UPDATE", "DELETE", "TRUNCATE", "TRIGGER")
_WRITES = ("INSERT", *_CHANGES)
# Predefined roles that write everywhere, or get at the files of the server.
_WRITE_EVERYWHERE = "pg_write_all_data"
_BEYOND_GRANTS = ("pg_write_server_files", "pg_execute_server_program", "pg_create_subscription")
_ATTRIBUTES = {
    "superuser": "is a superuser",
    "bypass_row_security": "goes past row security",
    "create_role": "may make roles and let itself into them",
    "replication": "may start replication",
}
_SLEEP, _ORIGIN = "session_replication_role", "origin"


def append_only(judging: Judging) -> None:
    """(f)"""
    if judging.in_files:
        for part in apart(judging):
            for of_part in (there, guarded_by_triggers, changes_tried):
                judging.check(of_part, part)
        judging.check(rights, Part.EFFECT)
        return
    judging.check(_writer)
    for part in apart(judging):
        for of_part in (there, guarded_by_triggers, _privileges, _beside, changes_tried):
            judging.check(of_part, part)
    judging.check(_settings)
    for part in apart(judging):
        judging.check(owned, part)
    for inspect in (_rules_elsewhere, _definers, _beyond_grants, _file_functions, _administrators):
        judging.check(inspect)
    judging.check(partial(event_triggers, at_login=False))


# Roles


def _writer(judging: Judging) -> None:
    if (writer := judging.writer) is None:
        text = "no role is named as the registrar that writes, and none is the only one that may"
        judging.unproven(Code.WRITER_UNPROVEN, text)
        return
    roles = judging.catalogue.roles
    if writer not in roles.attributes:
        judging.refute(Code.WRITER_UNPROVEN, f"there is no role {writer}")
        return
    judging.rest_on(roles.attributes[writer])
    for role in sorted(roles.becomes(writer)):
        for attribute, described in _ATTRIBUTES.items():
            if roles.has(role, attribute):
                via = "" if role == writer else f" can become {role}, which"
                text = f"the writer {writer}{via} {described}"
                judging.refute(Code.WRITER_ATTRIBUTES, text, rows=[roles.attributes[role]])
    for role in sorted(judging.powers & {_WRITE_EVERYWHERE, *_BEYOND_GRANTS}):
        text = f"the writer {writer} belongs to {role}, which writes past every grant"
        judging.refute(Code.WRITER_MEMBERSHIP, text, rows=roles.members(role))
    for role in roles.names():
        if role != writer and not roles.unbound(role) and writer in roles.uses(role):
            judging.refute(Code.WRITER_SHARED, f"{role} can act as the writer {writer}", rows=roles.members(writer))


def _privileges(judging: Judging, part: Part) -> None:
    """The writer may read and append and nothing else, and no other role may write."""
    if (row := judging.relation(part)) is None:
        return
    for relation in judging.spread(part):
        own = judging.catalogue.relation(relation) or row
        grants = [
            each
            for each in judging.catalogue.of("grants", relation)
            if each["object"] in ("relation", "column") and each["privilege"] in _WRITES
        ]
        _of_writer(judging, part, relation, own, grants, entry=relation == judging.part(part))
        held_by_others(judging, part, relation, str(own["owner"]), grants)
        roles = judging.catalogue.roles
        for role in _holders(roles, _WRITE_EVERYWHERE):
            if role not in (_WRITE_EVERYWHERE, judging.writer) and not roles.unbound(role):
                text = f"{role} belongs to {_WRITE_EVERYWHERE} and so may write {relation}"
                judging.refute(Code.OTHERS_MAY_WRITE, text, part=part, rows=roles.members(_WRITE_EVERYWHERE))


def _of_writer(
    judging: Judging, part: Part, relation: RelationName, row: Row, grants: list[Row], *, entry: bool
) -> None:
    writer, powers = judging.writer, judging.powers
    if writer is None:
        return
    if row["owner"] in powers:
        text = f"the writer {writer} owns {relation}, or can act as its owner {row['owner']}"
        judging.refute(Code.WRITER_OWNS, text, part=part, rows=[row])
        return
    own = [each for each in grants if each["grantee"] is None or each["grantee"] in powers]
    for each in own:
        what = f"{each['privilege']} on {_object(each, relation)}"
        if each["privilege"] in _CHANGES:
            text = f"the writer {writer} has {what} by {text_of(each['grantee'])}"
            judging.refute(Code.WRITER_PRIVILEGES, text, part=part, rows=[each])
        elif each["grantable"]:
            text = f"the writer {writer} may pass {what} on to others"
            judging.refute(Code.WRITER_PRIVILEGES, text, part=part, rows=[each])
        else:
            judging.rest_on(each)
    if entry and not any(each["privilege"] == "INSERT" for each in own):
        text = f"the writer {writer} has no INSERT on {relation}"
        judging.unproven(Code.WRITER_UNPROVEN, text, part=part, rows=grants)


def held_by_others(judging: Judging, part: Part, relation: RelationName, owner: str, grants: list[Row]) -> None:
    """Refute by each of these grants to a role that is neither the writer nor the owner."""
    roles, writer, powers = judging.catalogue.roles, judging.writer, judging.powers
    for each in grants:
        grantee = each["grantee"]
        if grantee is None:
            text = f"everybody has {each['privilege']} on {_object(each, relation)}"
            judging.refute(Code.OTHERS_MAY_WRITE, text, part=part, rows=[each])
            continue
        # The owner and superusers can let themselves in anyhow: the notes name them.
        if grantee == owner or writer is None:
            continue
        for role in _holders(roles, str(grantee)):
            if role != writer and not roles.unbound(role) and owner not in roles.uses(role):
                if role in powers and not roles.has(role, "login"):
                    continue
                via = "" if role == grantee else f" by way of {grantee}"
                text = f"{role} has {each['privilege']} on {_object(each, relation)}{via}, and is not the writer"
                judging.refute(Code.OTHERS_MAY_WRITE, text, part=part, rows=[each])


def _object(grant: Row, relation: RelationName) -> str:
    return str(relation) if grant["column"] is None else f"{grant['column']} of {relation}"


def _holders(roles: Roles, grantee: str) -> list[str]:
    """Every role that can use what was granted to one, that one included."""
    return [role for role in dict.fromkeys([grantee, *roles.names()]) if grantee in roles.uses(role)]


# What lies beside the relation


def _beside(judging: Judging, part: Part) -> None:
    name, catalogue = judging.part(part), judging.catalogue
    if name is None or catalogue.relation(name) is None:
        return
    roles = catalogue.roles
    owner = next((str(row["owner"]) for row in catalogue.rows("schemas") if row["schema"] == name.schema), None)
    for each in catalogue.rows("grants"):
        if each["object"] != "schema" or each["schema"] != name.schema or each["privilege"] != "CREATE":
            continue
        grantee = each["grantee"]
        if grantee is None or (grantee != owner and not roles.unbound(str(grantee))):
            text = f"{text_of(grantee)} may put objects into the schema {name.schema}"
            judging.refute(Code.SCHEMA_CREATE, text, part=part, rows=[each])
    if part is Part.EFFECT:
        # Those over any relation of the surface; once is enough.
        _views(judging)
        _functions(judging)
    for row in catalogue.of("subscriptions", name):
        text = f"{row['subscriptions']} subscriptions write into {name}, past grants and ordinary triggers"
        judging.refute(Code.REPLICATED_INTO, text, part=part, rows=[row])
    for row in catalogue.parents(name):
        if not row["partition"]:
            text = (
                f"{name} inherits from {row['parent_schema']}.{row['parent']}, and who may change that may change this"
            )
            judging.unproven(Code.INHERITED, text, part=part, rows=[row])


# pg_relation_is_updatable: bit 1 << CMD_UPDATE, CMD_INSERT, CMD_DELETE.
_THROUGH = {"UPDATE": 4, "INSERT": 8, "DELETE": 16}


def _views(judging: Judging) -> None:
    """Writing through a view is done with its owner's privileges, unless it is made to run as who asks."""
    roles = judging.catalogue.roles
    for view in judging.catalogue.rows("views"):
        if any(str(option).lower() in ("security_invoker=true", "security_invoker=on") for option in view["options"]):
            continue
        for each in judging.catalogue.of("grants", name_of(view)):
            bit = _THROUGH.get(str(each["privilege"]), 0)
            if not int(view["updatable"]) & bit or each["grantee"] == view["owner"]:
                continue
            grantee = each["grantee"]
            described = f"{text_of(grantee)} has {each['privilege']} on the view {name_of(view)} of {view['owner']}"
            by_writer = grantee is not None and grantee in judging.powers
            if by_writer and each["privilege"] != "INSERT":
                judging.refute(Code.WRITER_PRIVILEGES, described, rows=[view, each])
            elif not by_writer and (grantee is None or not roles.unbound(str(grantee))):
                judging.refute(Code.OTHERS_MAY_WRITE, described, rows=[view, each])


def _functions(judging: Judging) -> None:
    """Functions whose text names the surface, and which run as another role than who calls them."""
    roles = judging.catalogue.roles
    for row in judging.catalogue.rows("mentions"):
        if not row["definer"] or judging.reviewed(row, row["schema"]):
            continue
        function = f"{row['schema']}.{row['name']}"
        if row["trigger"]:
            # A trigger of any other relation may run it for a role that writes there: to fire it needs no EXECUTE.
            own = _attached(judging, function)
            if (own and only_raises(judging, function)) or any(judging.reviewed(each, name_of(each)) for each in own):
                continue
            text = (
                f"the trigger function {function} names the surface and runs as {row['owner']}: a role that writes to "
                "a relation with a trigger that calls it goes past the grants; it was not reviewed"
            )
            judging.unproven(Code.DEFINER_FUNCTION, text, rows=[row])
            continue
        # The writer as well: as its owner the function may do what the writer may not.
        if others := _callers(row, lambda role: roles.unbound(role)):
            text = f"{', '.join(others)} may call {function}, which speaks of the surface and runs as {row['owner']}"
            judging.unproven(Code.DEFINER_FUNCTION, text, rows=[row])


def _attached(judging: Judging, function: str) -> list[Row]:
    """The triggers of the surface that run a function."""
    return [row for row in judging.catalogue.rows("triggers") if row["function"] == function and row["enabled"] != OFF]


def _callers(row: Row, trusted: Callable[[str], bool]) -> list[str]:
    """Who may call a function, but for its owner and those who are trusted."""
    others = (each for each in row["executors"] if each is None or (each != row["owner"] and not trusted(str(each))))
    return [text_of(each) for each in others]


def _settings(judging: Judging) -> None:
    row = setting_of(judging, _SLEEP) or server_setting(judging, _SLEEP)
    if row is not None and row["value"] != _ORIGIN:
        text = f"sessions of the writer start with {_SLEEP} = {row['value']}: triggers and keys sleep"
        judging.refute(Code.REPLICATION_ROLE, text, rows=[row])
    roles, powers = judging.catalogue.roles, judging.powers
    for each in judging.catalogue.rows("parameters"):
        grantee = each["grantee"]
        # A role that can become a superuser can do it anyhow: the notes name these roles.
        if grantee is not None and roles.unbound(str(grantee)):
            continue
        text = f"{text_of(grantee)} has {each['privilege']} on the setting {each['parameter']}, which superusers have"
        if (grantee is None or grantee in powers) and str(each["parameter"]).lower() == _SLEEP:
            judging.refute(Code.PARAMETER_GRANTED, f"{text}: it switches triggers off", rows=[each])
        else:
            judging.unproven(Code.PARAMETER_GRANTED, f"{text}; revoke it", rows=[each])


# What no grant on the relation shows: rules elsewhere, code that runs with another role's rights under any text, and
# what writes to the files of the server.


def _rules_elsewhere(judging: Judging) -> None:
    for row in judging.catalogue.rows("rules_elsewhere"):
        if row["enabled"] == OFF or judging.reviewed(row, name_of(row)):
            continue
        text = (
            f"the rule {row['name']} of {str(row['event']).upper()} on {name_of(row)} speaks of the surface, and does "
            f"what it does as {row['owner']}; drop it, or name it in a policy as reviewed"
        )
        judging.unproven(Code.RULE_UNREVIEWED, text, rows=[row])


def _definers(judging: Judging) -> None:
    """A function with the rights of a role that may write can reach the surface without naming it."""
    described = [[row[each] for each in _NAMED] for row in judging.catalogue.rows("mentions")]
    roles, able, owners = judging.catalogue.roles, _able(judging), _owners(judging)
    for row in judging.catalogue.rows("definers"):
        owner = str(row["owner"])
        # Those whose text names the surface are judged by that.
        if [row[each] for each in _NAMED] in described or _known(judging, row):
            continue
        if not (row["superuser"] or roles.unbound(owner) or able & roles.powers(owner)):
            continue
        others = _callers(row, lambda role: acts_as(judging, role, owners))
        ways = [f"{', '.join(others)} may {'put it on a relation' if row['trigger'] else 'call it'}"] if others else []
        ways += [f"it is run by triggers of {', '.join(row['attached'])}"] if row["attached"] else []
        if ways:
            text = (
                f"the function {row['schema']}.{row['name']} runs as {row['owner']}, who may write to the surface, and "
                f"{' and '.join(ways)}: what it does is not shown by its text; REVOKE EXECUTE … FROM PUBLIC, give it "
                "another owner, or name it in a policy as reviewed"
            )
            judging.unproven(Code.DEFINER_FUNCTION, text, rows=[row])


# What tells a function from every other.
_NAMED = ("schema", "name", "arguments")


def _function(row: Row) -> str:
    return f"{row['schema']}.{row['name']}({row['arguments']})"


def _known(judging: Judging, row: Row) -> bool:
    """Whether a policy vouches for it, or for what it does to the surface as a trigger; or whether it only raises."""
    if judging.reviewed(row, row["schema"]):
        return True
    if not row["trigger"]:
        return False
    own = _attached(judging, f"{row['schema']}.{row['name']}")
    return plain(str(row["definition"])) or any(judging.reviewed(each, name_of(each)) for each in own)


def _able(judging: Judging) -> frozenset[str]:
    """All roles that own something of the surface, write to it, or write everywhere."""
    audit = judging.part(Part.AUDIT)
    owners = (row["owner"] for query in ("relations", "owners", "database") for row in judging.catalogue.rows(query))
    grantees = (
        each["grantee"]
        for each in judging.catalogue.rows("grants")
        if each["privilege"] in (*_WRITES, "CREATE")
        and each["grantee"] is not None
        # Another role that appends to the audit does no harm.
        and (each["privilege"] != "INSERT" or name_of(each) != audit)
    )
    writer: Iterable[str] = () if judging.writer is None else (judging.writer,)
    return frozenset(map(str, (*owners, *grantees, _WRITE_EVERYWHERE, *_BEYOND_GRANTS, *writer)))


def _owners(judging: Judging) -> frozenset[str]:
    return owners_of(judging, Part.EFFECT, Part.NONCE)


def _beyond_grants(judging: Judging) -> None:
    """A role with access to the files of the server can write the table's own; the writer's case is reported before."""
    roles, owners = judging.catalogue.roles, _owners(judging)
    for beyond in _BEYOND_GRANTS:
        for role in _holders(roles, beyond):
            if role not in (beyond, judging.writer) and not acts_as(judging, role, owners):
                text = f"{role} belongs to {beyond}, which goes past every grant; revoke it"
                judging.unproven(Code.OTHERS_MAY_WRITE, text, rows=roles.members(beyond))


def _file_functions(judging: Judging) -> None:
    powers = judging.powers
    for row in judging.catalogue.rows("file_functions"):
        grantee = row["grantee"]
        if grantee is not None and acts_as(judging, str(grantee), _owners(judging)):
            continue
        function = _function(row)
        text = (
            f"{text_of(grantee)} may call {function}, which writes past every grant, into the table's own file as well;"
            f" REVOKE EXECUTE ON FUNCTION {function} FROM {text_of(grantee)}"
        )
        code = Code.WRITER_PRIVILEGES if grantee in powers else Code.OTHERS_MAY_WRITE
        judging.unproven(code, text, rows=[row])


# PostgreSQL 16 binds a role that makes roles to those that it made.
_BOUND_SINCE = 160000


def _administrators(judging: Judging) -> None:
    """Who can become an owner, by any chain of memberships and of the right to let others in, is known by name."""
    roles, owners = judging.catalogue.roles, _owners(judging)
    before = all(row["number"] < _BOUND_SINCE for row in judging.catalogue.rows("server"))
    makers = {str(row["role"]): row for row in judging.catalogue.rows("administrators") if row["create_role"]}
    for role in sorted({*roles.names(), *makers}):
        if role in owners or role == judging.writer or role in judging.policy.reviewed or roles.unbound(role):
            continue
        if makers.get(role, {}).get("superuser"):
            continue
        how = ""
        if before and role in makers:
            how = "may make roles, and before PostgreSQL 16 let itself into any but superusers, the owner too"
        elif found := owners & roles.powers(role):
            how = f"can become {', '.join(sorted(found))}, who owns the surface"
        if how:
            text = f"{role} {how}; take that from it, or name it in a policy as reviewed"
            judging.unproven(Code.OTHERS_MAY_WRITE, text, rows=[makers.get(role) or roles.attributes[role]])


# What was tried


_HINTS = {
    "replace": "; without recursive_triggers=on REPLACE fires no DELETE trigger: declare it in the policy "
    "(`sqlite_connection`) if every connection of the registrar sets it, or let the schema refuse"
}


def _added(judging: Judging, part: Part) -> list[str]:
    """What in SQLite may change a row by adding one, where there is a key that it can run into."""
    name, row = judging.part(part), judging.relation(part)
    unique = name is not None and bool(judging.catalogue.unique(name))
    runs = {"upsert": unique, "replace": unique or (row is not None and not row["without_rowid"])}
    return [verb for verb in runs if runs[verb] or judging.evidence.probe(f"writer-{verb}{SUFFIX[part]}") is not None]


def changes_tried(judging: Judging, part: Part) -> None:
    """Every change, as the writer and as the owner, and an insert by a stranger."""
    name, suffix = judging.part(part), SUFFIX[part]
    # What no error and no count of rows means. If something swallowed the INSERT, or no unique index is there that ON
    # CONFLICT could name, it is UPDATE that has to be refused.
    silence = {"truncate": NoRows.DONE, "upsert": NoRows.HARMLESS}
    without = {"upsert": ("42P10", "55000", "0A000")}
    # An audit needs no unique key that an upsert could name; UPDATE is what it would do.
    verbs: tuple[str, ...] = VERBS if part is Part.AUDIT else (*VERBS, "upsert")
    if judging.in_files:
        silence, verbs = {}, (*VERBS, *_added(judging, part))
    for verb in verbs:
        no_rows, others = silence.get(verb, NoRows.NOTHING_DONE), without.get(verb, ())

        def by(answer: ProbeAnswer, others: tuple[str, ...] = others) -> bool:
            return guarded(answer) or answer.sqlstate in others or (judging.in_files and is_refusal(answer))

        for who in judging.actors:
            text = f"{verb.upper()} of {name} was not refused to the {who}{_HINTS.get(verb, '')}"
            judging.refused(f"{who}-{verb}{suffix}", Code.CHANGE_ADMITTED, text, part=part, by=by, no_rows=no_rows)
    if judging.in_files:
        return
    text, trial = f"a role without privileges inserted into {name}", f"stranger-insert{suffix}"
    judging.refused(trial, Code.STRANGER_ADMITTED, text, part=part, by=lambda said: said.sqlstate == NO_PRIVILEGE)


_FUNCTIONS = ("function", "procedure", "aggregate")
_DATABASE = "database"


def owned(judging: Judging, part: Part) -> None:
    """Every object of a part belongs to the owner of what is consumed, or to a superuser."""
    name = judging.part(part)
    if name is None or judging.relation(part) is None:
        return
    # The owners of what is consumed can open every key as it is; that of the audit has to do with the audit only.
    trusted = owners_of(judging, Part.EFFECT, Part.NONCE, part)
    # Each thing once, with the first of the relations that are made of it.
    things: dict[tuple[str, str], tuple[RelationName, Row]] = {}
    for relation in judging.spread(part):
        for row in judging.catalogue.of("owners", relation):
            things.setdefault((str(row["kind"]), str(row["name"])), (relation, row))
    for relation, row in things.values():
        _held(judging, part, relation, row, trusted)
    # That of the effect is that of the nonce: once is enough.
    if part is not Part.NONCE:
        _held(judging, part, name, {"kind": _DATABASE, "name": "", "owner": _database_owner(judging)}, trusted)


def owners_of(judging: Judging, *parts: Part) -> frozenset[str]:
    """What others can do as one of them, that one can do anyhow."""
    rows = (judging.catalogue.relation(name) for part, name in judging.evidence.surface.parts.items() if part in parts)
    return frozenset(str(row["owner"]) for row in rows if row is not None)


def _database_owner(judging: Judging) -> str:
    rows = judging.catalogue.rows("database")
    if not rows:
        raise UnreadError(_DATABASE, "expected the owner, got no row")
    return str(rows[0]["owner"])


def acts_as(judging: Judging, role: str, owners: frozenset[str]) -> bool:
    """Whether a role is bound by nothing, or is or can act as one of these owners."""
    real = _database_owner(judging) if role == DATABASE_OWNER else role
    roles = judging.catalogue.roles
    return roles.unbound(real) or bool(owners & roles.uses(real))


def _held(judging: Judging, part: Part, relation: RelationName, row: Row, trusted: frozenset[str]) -> None:
    writer, owner, kind = judging.writer, str(row["owner"]), str(row["kind"])
    shown = judging.catalogue.rows("database") if kind == _DATABASE else (row,)
    by_writer = writer is not None and owner in judging.powers
    if not by_writer and acts_as(judging, owner, trusted):
        judging.rest_on(*shown)
        return
    # What an owner can do, and how the role becomes another's.
    to = next(str(each["owner"]) for each in judging.catalogue.of("relations", relation))
    if kind == _DATABASE:
        may = f"owns the database, and can drop it with {relation}; ALTER DATABASE … OWNER TO {to}, or to a superuser"
    else:
        # There is no ALTER EXTENSION … OWNER TO.
        way = f"REASSIGN OWNED BY {owner}" if kind == "extension" else f"ALTER {kind.upper()} {row['name']} OWNER"
        does = "replace it" if kind in _FUNCTIONS else "take a part of that along with DROP … CASCADE"
        may = f"owns the {kind} {row['name']}, of which {relation} is made, and can {does}; {way} TO {to}"
    replaceable = Code.GUARD_REPLACEABLE if kind in _FUNCTIONS else None
    if by_writer:
        who = f"the writer {writer}" if owner == writer else f"the writer {writer} can act as {owner}, who"
        judging.refute(replaceable or Code.WRITER_OWNS, f"{who} {may}", part=part, rows=shown)
    else:
        judging.unproven(replaceable or Code.OWNED_ELSEWHERE, f"{owner} {may}", part=part, rows=shown)
