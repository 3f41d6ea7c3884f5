"""hx-sync: near misses of every argument and of all that an object holds (`specs/hx-sync/neighbours.yaml`)."""

from __future__ import annotations

from holdfast.conformance.attacks.near_miss import swept

TESTS = swept(
    __name__,
    # A member too many, another type, and a name that is nearly that of a device.
    test_what_is_asked_for_fits_its_schema_and_names_its_device="HX-REQ-1",
    # A device that is enrolled again keeps the id that it has.
    test_no_near_miss_of_the_id_of_a_device_is_its_id="HX-LOC-2",
    # Every value of a batch, and every instant as the parsers of several languages read it.
    test_no_near_miss_of_what_a_batch_holds_is_published="HX-SEG-16",
    # In what is published, and in what is imported.
    test_no_near_miss_of_a_node_publishes_or_has_its_events="HX-SEG-12",
    # Bytes, and texts of any length and script.
    test_a_near_miss_of_what_was_published_is_another_content="HX-P2",
    # Bytes that differ in one place, far behind too, and digests that differ in one digit.
    test_a_near_miss_of_a_blob_or_of_its_hash_is_another="HX-BLB-1",
    # Other spellings of a key, and keys that lead elsewhere.
    test_nothing_is_put_at_a_near_miss_of_a_place="HX-LAY-7",
    # Other spellings of a key that is imported, and keys that lead elsewhere.
    test_nothing_is_imported_from_a_near_miss_of_a_key="HX-LAY-6",
    # Whichever of the two is applied first.
    test_a_near_miss_of_the_id_of_a_tombstone_is_another_tombstone="HX-TMB-5",
    # To the microsecond, in any offset.
    test_a_window_ends_at_no_near_miss_of_its_instants="HX-TMB-3",
    # As it is asked for, and as it is sealed.
    test_a_window_of_one_node_is_of_no_near_miss_of_it="HX-TMB-9",
    # Byte order marks, comments, members that stand there twice at any depth; other orders and escapes.
    test_headers_and_batches_are_strict_json_in_any_spelling="HX-SEG-14",
    # In the header; the bytes in front of it have cases.
    test_no_near_miss_of_the_magic_is_it="HX-SEG-1",
    # Numbers by their value, and what is taken for them.
    test_no_near_miss_of_the_version_is_it="HX-SEG-2",
    # A segment that says nearly so.
    test_no_near_miss_of_a_type_is_it="HX-SEG-3",
    # A vault whose id differs in one digit is another.
    test_no_near_miss_of_a_vault_is_it="HX-SEG-4",
    # Between key and header.
    test_no_near_miss_of_the_node_of_a_segment_is_it="HX-SEG-5",
    # Between key and header, and between two that are published.
    test_no_near_miss_of_the_id_of_a_segment_is_it="HX-SEG-6",
    # What the standard parsers of several languages read beyond the format.
    test_no_near_miss_of_an_instant_dates_a_segment="HX-SEG-7",
    # In the header of an object that is sealed with it.
    test_no_near_miss_of_an_algorithm_names_it="HX-SEG-8",
    # Between key and header.
    test_no_near_miss_of_the_id_in_a_tombstone_is_it="HX-TMB-1",
    # Numbers by their value, and what is taken for them.
    test_no_near_miss_of_a_length_is_it="HX-BLB-4",
    # In the header of a blob that is packed with it.
    test_no_near_miss_of_a_codec_names_it="HX-BLB-5",
    # Every member of every record, sealed again for each.
    test_a_segment_with_a_near_miss_in_a_record_is_whole_or_refused="HX-SEG-13",
    # Sealed again for each.
    test_no_near_miss_of_an_instant_dates_an_event_or_a_session="HX-SEG-15",
    # Numbers that have the same bits in a narrower type.
    test_a_near_miss_of_the_number_of_an_event_is_another_event="HX-SEG-10",
    # Its text, and its two instants.
    test_a_window_with_a_near_miss_in_it_is_whole_or_refused="HX-TMB-2",
    # Its text, and what it lists.
    test_a_manifest_with_a_near_miss_in_it_is_whole_or_refused="HX-MAN-1",
)
