"""Whether rows, once there, stay as they are: every way of a role to a privilege, and what was tried."""

from __future__ import annotations

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.atomic import server_setting, setting_of
from holdfast.conformance.fitness.criteria.judging import NO_PRIVILEGE, Judging, NoRows, guarded
from holdfast.conformance.fitness.criteria.tables import OFF, apart, reviewed, there
from holdfast.conformance.fitness.criteria.triggers import VERBS, guarded_by_triggers, only_raises
from holdfast.conformance.fitness.model import EvidenceClass, Part, ProbeAnswer, RelationName, Row
from holdfast.conformance.fitness.postgres.catalogue import Roles, name_of, text_of

NEEDS = (EvidenceClass.CATALOGUE, EvidenceClass.PRIVILEGES, EvidenceClass.CLONE)
_SUFFIX = {Part.EFFECT: "", Part.NONCE: "-nonce", Part.AUDIT: "-audit"}
_CHANGES = ("UPDATE", "DELETE", "TRUNCATE", "TRIGGER")
WRITES = ("INSERT", *_CHANGES)
# Predefined roles that write everywhere, or get at the files of the server.
WRITE_EVERYWHERE = ("pg_write_all_data",)
BEYOND_GRANTS = ("pg_write_server_files", "pg_execute_server_program", "pg_create_subscription")
_ATTRIBUTES = {
    "superuser": "is a superuser",
    "bypass_row_security": "goes past row security",
    "create_role": "may make roles and let itself into them",
    "replication": "may start replication",
}
_SLEEP, _ORIGIN = "session_replication_role", "origin"


def append_only(judging: Judging) -> None:
    """(f)"""
    judging.check(_writer)
    for part in apart(judging):
        judging.check(lambda on, part=part: _there(on, part))  # type: ignore[misc]
        judging.check(lambda on, part=part: guarded_by_triggers(on, part))  # type: ignore[misc]
        judging.check(lambda on, part=part: privileges(on, part))  # type: ignore[misc]
        judging.check(lambda on, part=part: _beside(on, part))  # type: ignore[misc]
        judging.check(lambda on, part=part: changes_tried(on, part))  # type: ignore[misc]
    judging.check(_settings)


def _there(judging: Judging, part: Part) -> None:
    there(judging, part)


# Roles


def _writer(judging: Judging) -> None:
    writer = judging.evidence.surface.writer
    if writer is None:
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
                judging.refute(
                    Code.WRITER_ATTRIBUTES, f"the writer {writer}{via} {described}", rows=[roles.attributes[role]]
                )
    for role in sorted(roles.powers(writer) & {*WRITE_EVERYWHERE, *BEYOND_GRANTS}):
        rows = [row for row in roles.memberships if row["role"] == role]
        text = f"the writer {writer} belongs to {role}, which writes past every grant"
        judging.refute(Code.WRITER_MEMBERSHIP, text, rows=rows)
    _shared(judging, roles, writer)


def _shared(judging: Judging, roles: Roles, writer: str) -> None:
    for role in roles.names():
        if role != writer and not roles.unbound(role) and writer in roles.uses(role):
            rows = [row for row in roles.memberships if row["role"] == writer]
            judging.refute(Code.WRITER_SHARED, f"{role} can act as the writer {writer}", rows=rows)


def privileges(judging: Judging, part: Part) -> None:
    """The writer may read and append and nothing else, and no other role may write."""
    name = judging.part(part)
    row = None if name is None else judging.catalogue.relation(name)
    if name is None or row is None:
        return
    for relation in (name, *judging.catalogue.below(name)):
        own = judging.catalogue.relation(relation) or row
        grants = [
            each
            for each in judging.catalogue.of("grants", relation)
            if each["object"] in ("relation", "column") and each["privilege"] in WRITES
        ]
        _of_writer(judging, part, relation, own, grants, entry=relation == name)
        _of_others(judging, part, relation, str(own["owner"]), grants)


def _of_writer(
    judging: Judging, part: Part, relation: RelationName, row: Row, grants: list[Row], *, entry: bool
) -> None:
    writer, roles = judging.evidence.surface.writer, judging.catalogue.roles
    if writer is None:
        return
    powers = roles.powers(writer)
    if row["owner"] in powers:
        text = f"the writer {writer} owns {relation}, or can act as its owner {row['owner']}"
        judging.refute(Code.WRITER_OWNS, text, part=part, rows=[row])
        return
    own = [each for each in grants if each["grantee"] is None or each["grantee"] in powers]
    for each in own:
        where = f"{relation}" if each["column"] is None else f"{each['column']} of {relation}"
        if each["privilege"] in _CHANGES:
            text = f"the writer {writer} has {each['privilege']} on {where} by {text_of(each['grantee'])}"
            judging.refute(Code.WRITER_PRIVILEGES, text, part=part, rows=[each])
        elif each["grantable"]:
            text = f"the writer {writer} may pass {each['privilege']} on {where} on to others"
            judging.refute(Code.WRITER_PRIVILEGES, text, part=part, rows=[each])
        else:
            judging.rest_on(each)
    if entry and not any(each["privilege"] == "INSERT" for each in own):
        judging.unproven(
            Code.WRITER_UNPROVEN, f"the writer {writer} has no INSERT on {relation}", part=part, rows=grants
        )


def _of_others(judging: Judging, part: Part, relation: RelationName, owner: str, grants: list[Row]) -> None:
    held_by_others(judging, part, relation, owner, grants)
    roles, writer = judging.catalogue.roles, judging.evidence.surface.writer
    for everywhere in WRITE_EVERYWHERE:
        for role in holders(roles, everywhere):
            if role not in (everywhere, writer) and not roles.unbound(role):
                rows = [row for row in roles.memberships if row["role"] == everywhere]
                text = f"{role} belongs to {everywhere} and so may write {relation}"
                judging.refute(Code.OTHERS_MAY_WRITE, text, part=part, rows=rows)


def held_by_others(judging: Judging, part: Part, relation: RelationName, owner: str, grants: list[Row]) -> None:
    """Refute by each of these grants to a role that is neither the writer nor the owner."""
    roles, writer = judging.catalogue.roles, judging.evidence.surface.writer
    powers = frozenset[str]() if writer is None else roles.powers(writer)
    for each in grants:
        grantee = each["grantee"]
        if grantee is None:
            text = f"everybody has {each['privilege']} on {_object(each, relation)}"
            judging.refute(Code.OTHERS_MAY_WRITE, text, part=part, rows=[each])
            continue
        # The owner and superusers can let themselves in anyhow: the notes name them.
        if grantee == owner or writer is None:
            continue
        for role in holders(roles, str(grantee)):
            if role != writer and not roles.unbound(role) and owner not in roles.uses(role):
                if role in powers and not roles.has(role, "login"):
                    continue
                via = "" if role == grantee else f" by way of {grantee}"
                text = f"{role} has {each['privilege']} on {_object(each, relation)}{via}, and is not the writer"
                judging.refute(Code.OTHERS_MAY_WRITE, text, part=part, rows=[each])


def _object(grant: Row, relation: RelationName) -> str:
    return str(relation) if grant["column"] is None else f"{grant['column']} of {relation}"


def holders(roles: Roles, grantee: str) -> list[str]:
    """Every role that can use what was granted to one, that one included."""
    return [role for role in dict.fromkeys([grantee, *roles.names()]) if grantee in roles.uses(role)]


# What lies beside the relation


def _beside(judging: Judging, part: Part) -> None:
    name = judging.part(part)
    if name is None or judging.catalogue.relation(name) is None:
        return
    _schema(judging, part, name)
    if part is Part.EFFECT:
        # Those over any relation of the surface; once is enough.
        _views(judging)
        _functions(judging)
    for row in judging.catalogue.of("subscriptions", name):
        text = f"{row['subscriptions']} subscriptions write into {name}, past grants and ordinary triggers"
        judging.refute(Code.REPLICATED_INTO, text, part=part, rows=[row])
    for row in judging.catalogue.parents(name):
        if not row["partition"]:
            text = (
                f"{name} inherits from {row['parent_schema']}.{row['parent']}, and who may change that may change this"
            )
            judging.unproven(Code.INHERITED, text, part=part, rows=[row])


def _schema(judging: Judging, part: Part, name: RelationName) -> None:
    roles = judging.catalogue.roles
    owner = next((str(row["owner"]) for row in judging.catalogue.rows("schemas") if row["schema"] == name.schema), None)
    for each in judging.catalogue.rows("grants"):
        if each["object"] != "schema" or each["schema"] != name.schema or each["privilege"] != "CREATE":
            continue
        grantee = each["grantee"]
        if grantee is None or (grantee != owner and not roles.unbound(str(grantee))):
            text = f"{text_of(grantee)} may put objects into the schema {name.schema}"
            judging.refute(Code.SCHEMA_CREATE, text, part=part, rows=[each])


# pg_relation_is_updatable: bit 1 << CMD_UPDATE, CMD_INSERT, CMD_DELETE.
_THROUGH = {"UPDATE": 4, "INSERT": 8, "DELETE": 16}


def _views(judging: Judging) -> None:
    """Writing through a view is done with its owner's privileges, unless it is made to run as who asks."""
    roles, writer = judging.catalogue.roles, judging.evidence.surface.writer
    for view in judging.catalogue.rows("views"):
        if any(str(option).lower() in ("security_invoker=true", "security_invoker=on") for option in view["options"]):
            continue
        for each in judging.catalogue.of("grants", name_of(view)):
            bit = _THROUGH.get(str(each["privilege"]), 0)
            if not int(view["updatable"]) & bit or each["grantee"] == view["owner"]:
                continue
            grantee = each["grantee"]
            described = f"{text_of(grantee)} has {each['privilege']} on the view {name_of(view)} of {view['owner']}"
            by_writer = grantee is not None and writer is not None and grantee in roles.powers(writer)
            if by_writer and each["privilege"] != "INSERT":
                judging.refute(Code.WRITER_PRIVILEGES, described, rows=[view, each])
            elif not by_writer and (grantee is None or not roles.unbound(str(grantee))):
                judging.refute(Code.OTHERS_MAY_WRITE, described, rows=[view, each])


def _functions(judging: Judging) -> None:
    roles = judging.catalogue.roles
    for row in judging.catalogue.rows("mentions"):
        known = {str(row["name"]), f"{row['schema']}.{row['name']}"} & set(judging.policy.reviewed)
        if not row["definer"] or known:
            continue
        if row["trigger"]:
            _trigger_function(judging, row)
            continue
        # The writer as well: as its owner the function may do what the writer may not.
        others = [
            each for each in row["executors"] if each is None or (each != row["owner"] and not roles.unbound(str(each)))
        ]
        if others:
            text = (
                f"{', '.join(map(text_of, others))} may call {row['schema']}.{row['name']}, which speaks of the "
                f"surface and runs as {row['owner']}"
            )
            judging.unproven(Code.DEFINER_FUNCTION, text, rows=[row])


def _trigger_function(judging: Judging, row: Row) -> None:
    """A trigger of any other relation may run it for a role that writes there: to fire it needs no EXECUTE."""
    function = f"{row['schema']}.{row['name']}"
    own = [
        each for each in judging.catalogue.rows("triggers") if each["function"] == function and each["enabled"] != OFF
    ]
    if own and (only_raises(judging, function) or any(reviewed(judging, name_of(each), each) for each in own)):
        return
    text = (
        f"the trigger function {function} names the surface and runs as {row['owner']}: a role that writes to a "
        "relation with a trigger that calls it goes past the grants; it was not reviewed"
    )
    judging.unproven(Code.DEFINER_FUNCTION, text, rows=[row])


def _settings(judging: Judging) -> None:
    row = setting_of(judging, _SLEEP) or server_setting(judging, _SLEEP)
    if row is not None and row["value"] != _ORIGIN:
        text = f"sessions of the writer start with {_SLEEP} = {row['value']}: triggers and keys sleep"
        judging.refute(Code.REPLICATION_ROLE, text, rows=[row])
    roles, writer = judging.catalogue.roles, judging.evidence.surface.writer
    powers = frozenset[str]() if writer is None else roles.powers(writer)
    for each in judging.catalogue.rows("parameters"):
        grantee = each["grantee"]
        # A role that can become a superuser can do it anyhow: the notes name these roles.
        if grantee is not None and roles.unbound(str(grantee)):
            continue
        text = f"{text_of(grantee)} has {each['privilege']} on the setting {each['parameter']}, which superusers have"
        ours = grantee is None or grantee in powers
        if ours and str(each["parameter"]).lower() == "session_replication_role":
            judging.refute(Code.PARAMETER_GRANTED, f"{text}: it switches triggers off", rows=[each])
        else:
            judging.unproven(Code.PARAMETER_GRANTED, f"{text}; revoke it", rows=[each])


# What was tried


def changes_tried(judging: Judging, part: Part) -> None:
    """Every change, as the writer and as the owner, and an insert by a stranger."""
    name, suffix = judging.part(part), _SUFFIX[part]
    # An audit needs no unique key that an upsert could name; UPDATE is what it would do.
    verbs = VERBS if part is Part.AUDIT else (*VERBS, "upsert")
    for verb in verbs:
        for who in ("writer", "owner"):
            if who == "writer" and judging.evidence.surface.writer is None:
                continue
            text = f"{verb.upper()} of {name} was not refused to the {who}"
            name_of_probe, no_rows = f"{who}-{verb}{suffix}", silence_of(verb)
            by = _not_upserted if verb == "upsert" else guarded
            judging.refused(name_of_probe, Code.CHANGE_ADMITTED, text, part=part, by=by, no_rows=no_rows)
    text = f"a role without privileges inserted into {name}"
    judging.refused(f"stranger-insert{suffix}", Code.STRANGER_ADMITTED, text, part=part, by=_denied)


def silence_of(verb: str) -> NoRows:
    """What no error and no count of rows means for a verb."""
    if verb == "upsert":
        # Something swallowed the INSERT; it is UPDATE that has to be refused.
        return NoRows.HARMLESS
    return NoRows.DONE if verb == "truncate" else NoRows.NOTHING_DONE


def _not_upserted(answer: ProbeAnswer) -> bool:
    """Guarded, or without a unique index that ON CONFLICT could name: then it is UPDATE that has to be refused."""
    return guarded(answer) or answer.sqlstate in ("42P10", "55000", "0A000")


def _denied(answer: ProbeAnswer) -> bool:
    return answer.sqlstate == NO_PRIVILEGE
