"""m5-log: near misses of every argument, as `specs/m5-log/neighbours.yaml` declares them."""

from __future__ import annotations

from holdfast.conformance.attacks.near_miss import swept

TESTS = swept(
    __name__,
    # Other spellings of base64url, and bytes more, less or changed.
    test_no_near_miss_of_the_bytes_of_an_operation_is_that_operation="M5-PUT-6",
    # Digests in other letters, of other lengths, or with another digit; members that are not known.
    test_no_near_miss_of_an_id_is_the_id_of_an_operation="M5-PUT-2",
    # Other spellings of base64url, and bytes more, less or changed.
    test_no_near_miss_of_the_bytes_of_a_credential_is_that_credential="M5-VC-3",
    # Digests in other letters, of other lengths, or with another digit.
    test_no_near_miss_of_a_hash_is_the_hash_of_a_credential="M5-VC-2",
    # Numbers of other widths, and texts that resemble them.
    test_no_near_miss_of_an_index_is_that_index="M5-CKP-1",
    # Loaded or deleted.
    test_no_near_miss_of_the_id_of_a_checkpoint_is_its_id="M5-CKP-2",
    # Both ends, and the source.
    test_no_near_miss_of_a_range_is_that_range="M5-REP-1",
)
