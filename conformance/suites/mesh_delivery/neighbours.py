"""mesh-delivery: near misses of every argument and of what is in meta, as `specs/mesh-delivery/neighbours.yaml`
declares them."""

from __future__ import annotations

from holdfast.conformance.attacks.near_miss import swept

TESTS = swept(
    __name__,
    # Unknown members, names in other letters, and what is no object.
    test_a_request_with_anything_beside_its_fields_has_no_fingerprint="MESH-4.4-F1",
    # Numbers of every width, and texts that resemble them.
    test_a_near_miss_of_a_version_is_another_one_or_none="MESH-4.4-F2",
    # Each refused beside the kind itself.
    test_no_near_miss_of_a_kind_is_the_kind="MESH-4.4-F3",
    # Names, which are never folded, and keys, of which the case alone is.
    test_a_near_miss_of_a_destination_is_another_one_or_none="MESH-4.4-F4",
    # UUIDs and ULIDs.
    test_a_near_miss_of_a_reply_is_another_one_or_none="MESH-4.4-F5",
    # Each refused beside the priority itself.
    test_no_near_miss_of_a_priority_is_the_priority="MESH-4.4-F6",
    # Spellings of base64url, and bytes that differ at one place up to 65,536.
    test_a_near_miss_of_a_body_is_another_one_or_none="MESH-4.4-F9",
    # The base64url around it, and the JSON document in it.
    test_a_near_miss_of_a_meta_is_another_one_or_none="MESH-4.4-F13",
    # Unknown members, names in other letters, and what is no object.
    test_a_send_with_anything_beside_its_members_is_refused="MESH-4.6-J2",
    # Other spellings of a UUID, and others.
    test_a_near_miss_of_a_mesh_is_another_one_or_none="MESH-4.1-S1",
    # Other spellings of a key, and others.
    test_a_near_miss_of_a_sender_is_another_one_or_none="MESH-4.1-S2",
    # Texts that a database or a library takes for equal, each accepted and each known again.
    test_a_near_miss_of_an_id_is_another_id="MESH-4.1-B1",
    # Claims beside a send that is accepted already.
    test_no_claimed_fingerprint_changes_an_answer="MESH-4.4-P3",
    # Each field of a request beside the one that was accepted; what is the same in another spelling is a retry.
    test_a_near_miss_of_an_accepted_send_is_a_conflict="MESH-4.1-B3",
    # Each argument of a send beside one that was taken in; what is the same in another spelling is known.
    test_a_near_miss_of_what_is_in_the_outbox_is_another_send="MESH-4.1-L4",
    # Unknown members, names in other letters, and what is no object.
    test_a_send_to_the_daemon_with_anything_beside_its_members_is_refused="MESH-4.4-P1",
    # Ids of dead rows and ids in use, which an operator has to name as they are.
    test_a_near_miss_of_an_id_is_no_id_of_a_dead_row_and_free_for_one="MESH-4.5-O6",
    # Unknown members, names in other letters, and what is no object.
    test_a_start_with_anything_beside_its_members_is_refused="MESH-15.1-B10",
    # Names that resemble one that the broker advertises.
    test_a_near_miss_of_a_feature_is_a_feature_that_is_missing="MESH-15.5-X1",
    # Numbers of every width, fractions, and texts that resemble numbers.
    test_a_near_miss_of_an_override_is_another_number_or_none="MESH-4.9-A8",
)
