"""mesh-delivery: near misses of every argument and of what is in meta, as `specs/mesh-delivery/neighbours.yaml`
declares them."""

from __future__ import annotations

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.neighbours import sweep


@clause("MESH-4.4-F1")
def test_a_request_with_anything_beside_its_fields_has_no_fingerprint(bench: Bench) -> None:
    """Unknown members, names in other letters, and what is no object."""
    sweep(bench, "MESH-4.4-F1")


@clause("MESH-4.4-F2")
def test_a_near_miss_of_a_version_is_another_one_or_none(bench: Bench) -> None:
    """Numbers of every width, and texts that resemble them."""
    sweep(bench, "MESH-4.4-F2")


@clause("MESH-4.4-F3")
def test_no_near_miss_of_a_kind_is_the_kind(bench: Bench) -> None:
    """Each refused beside the kind itself."""
    sweep(bench, "MESH-4.4-F3")


@clause("MESH-4.4-F4")
def test_a_near_miss_of_a_destination_is_another_one_or_none(bench: Bench) -> None:
    """Names, which are never folded, and keys, of which the case alone is."""
    sweep(bench, "MESH-4.4-F4")


@clause("MESH-4.4-F5")
def test_a_near_miss_of_a_reply_is_another_one_or_none(bench: Bench) -> None:
    """UUIDs and ULIDs."""
    sweep(bench, "MESH-4.4-F5")


@clause("MESH-4.4-F6")
def test_no_near_miss_of_a_priority_is_the_priority(bench: Bench) -> None:
    """Each refused beside the priority itself."""
    sweep(bench, "MESH-4.4-F6")


@clause("MESH-4.4-F9")
def test_a_near_miss_of_a_body_is_another_one_or_none(bench: Bench) -> None:
    """Spellings of base64url, and bytes that differ at one place up to 65,536."""
    sweep(bench, "MESH-4.4-F9")


@clause("MESH-4.4-F13")
def test_a_near_miss_of_a_meta_is_another_one_or_none(bench: Bench) -> None:
    """The base64url around it, and the JSON document in it."""
    sweep(bench, "MESH-4.4-F13")


@clause("MESH-4.6-J2")
def test_a_send_with_anything_beside_its_members_is_refused(bench: Bench) -> None:
    """Unknown members, names in other letters, and what is no object."""
    sweep(bench, "MESH-4.6-J2")


@clause("MESH-4.1-S1")
def test_a_near_miss_of_a_mesh_is_another_one_or_none(bench: Bench) -> None:
    """Other spellings of a UUID, and others."""
    sweep(bench, "MESH-4.1-S1")


@clause("MESH-4.1-S2")
def test_a_near_miss_of_a_sender_is_another_one_or_none(bench: Bench) -> None:
    """Other spellings of a key, and others."""
    sweep(bench, "MESH-4.1-S2")


@clause("MESH-4.1-B1")
def test_a_near_miss_of_an_id_is_another_id(bench: Bench) -> None:
    """Texts that a database or a library takes for equal, each accepted and each known again."""
    sweep(bench, "MESH-4.1-B1")


@clause("MESH-4.4-P3")
def test_no_claimed_fingerprint_changes_an_answer(bench: Bench) -> None:
    """Claims beside a send that is accepted already."""
    sweep(bench, "MESH-4.4-P3")


@clause("MESH-4.1-B3")
def test_a_near_miss_of_an_accepted_send_is_a_conflict(bench: Bench) -> None:
    """Each field of a request beside the one that was accepted; what is the same in another spelling is a retry."""
    sweep(bench, "MESH-4.1-B3")


@clause("MESH-4.1-L4")
def test_a_near_miss_of_what_is_in_the_outbox_is_another_send(bench: Bench) -> None:
    """Each argument of a send beside one that was taken in; what is the same in another spelling is known."""
    sweep(bench, "MESH-4.1-L4")


@clause("MESH-4.4-P1")
def test_a_send_to_the_daemon_with_anything_beside_its_members_is_refused(bench: Bench) -> None:
    """Unknown members, names in other letters, and what is no object."""
    sweep(bench, "MESH-4.4-P1")


@clause("MESH-4.5-O6")
def test_a_near_miss_of_an_id_is_no_id_of_a_dead_row_and_free_for_one(bench: Bench) -> None:
    """Ids of dead rows and ids in use, which an operator has to name as they are."""
    sweep(bench, "MESH-4.5-O6")


@clause("MESH-15.1-B10")
def test_a_start_with_anything_beside_its_members_is_refused(bench: Bench) -> None:
    """Unknown members, names in other letters, and what is no object."""
    sweep(bench, "MESH-15.1-B10")


@clause("MESH-15.5-X1")
def test_a_near_miss_of_a_feature_is_a_feature_that_is_missing(bench: Bench) -> None:
    """Names that resemble one that the broker advertises."""
    sweep(bench, "MESH-15.5-X1")


@clause("MESH-4.9-A8")
def test_a_near_miss_of_an_override_is_another_number_or_none(bench: Bench) -> None:
    """Numbers of every width, fractions, and texts that resemble numbers."""
    sweep(bench, "MESH-4.9-A8")
