"""calyx-replay: near misses of every argument and of everything in an envelope, as `specs/calyx-replay/neighbours.yaml`
declares them."""

from __future__ import annotations

from holdfast.conformance.attacks.near_miss import swept

TESTS = swept(
    __name__,
    # The base64url around it, and the JSON document in it; beside the envelope, and before it comes.
    test_no_near_miss_of_the_spelling_of_an_envelope_is_delivered="CALYX-KEY-6",
    # Signed by the sender.
    test_no_near_miss_of_the_protocol_version_is_the_protocol_version="CALYX-KEY-4a",
    # Signed by the sender.
    test_a_near_miss_of_a_message_id_is_another_one_or_none="CALYX-SCH-14",
    # The near miss comes second or first, and is refused when it comes again.
    test_a_near_miss_of_a_member_of_the_header_makes_another_envelope="CALYX-KEY-4b",
    # Wherever it differs, up to 65,536 characters from the front.
    test_a_near_miss_of_a_ciphertext_makes_another_envelope="CALYX-KEY-4c",
    # Fingerprint and key, signed with the key of the sender.
    test_no_near_miss_of_a_sender_is_the_sender="CALYX-ALG-10",
    # Each beside the delivered envelope.
    test_no_near_miss_of_a_signature_signs="CALYX-KEY-7",
    # What the standard parsers of several languages read beyond the format.
    test_no_near_miss_of_an_instant_dates_an_envelope="CALYX-ALG-9",
    # Numbers of every width, with a fraction and without, and what is no number.
    test_a_retention_is_the_number_that_was_asked_for="CALYX-PRN-7",
    # The near miss is listed and the id arrives, or the other way round.
    test_the_id_of_a_lost_envelope_blocks_no_near_miss_of_it="CALYX-MIG-4",
    # Each refused as a whole, with nothing stored.
    test_no_other_spelling_of_an_envelope_of_version_0_is_migrated="CALYX-MIG-7",
)
