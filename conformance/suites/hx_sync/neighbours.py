"""hx-sync: near misses of every argument and of all that an object holds (`specs/hx-sync/neighbours.yaml`)."""

from __future__ import annotations

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.neighbours import sweep


@clause("HX-REQ-1")
def test_what_is_asked_for_fits_its_schema_and_names_its_device(bench: Bench) -> None:
    """A member too many, another type, and a name that is nearly that of a device."""
    sweep(bench, "HX-REQ-1")


@clause("HX-LOC-2")
def test_no_near_miss_of_the_id_of_a_device_is_its_id(bench: Bench) -> None:
    """A device that is enrolled again keeps the id that it has."""
    sweep(bench, "HX-LOC-2")


@clause("HX-SEG-16")
def test_no_near_miss_of_what_a_batch_holds_is_published(bench: Bench) -> None:
    """Every value of a batch, and every instant as the parsers of several languages read it."""
    sweep(bench, "HX-SEG-16")


@clause("HX-SEG-12")
def test_no_near_miss_of_a_node_publishes_or_has_its_events(bench: Bench) -> None:
    """In what is published, and in what is imported."""
    sweep(bench, "HX-SEG-12")


@clause("HX-P2")
def test_a_near_miss_of_what_was_published_is_another_content(bench: Bench) -> None:
    """Bytes, and texts of any length and script."""
    sweep(bench, "HX-P2")


@clause("HX-BLB-1")
def test_a_near_miss_of_a_blob_or_of_its_hash_is_another(bench: Bench) -> None:
    """Bytes that differ in one place, far behind too, and digests that differ in one digit."""
    sweep(bench, "HX-BLB-1")


@clause("HX-LAY-7")
def test_nothing_is_put_at_a_near_miss_of_a_place(bench: Bench) -> None:
    """Other spellings of a key, and keys that lead elsewhere."""
    sweep(bench, "HX-LAY-7")


@clause("HX-LAY-6")
def test_nothing_is_imported_from_a_near_miss_of_a_key(bench: Bench) -> None:
    """Other spellings of a key that is imported, and keys that lead elsewhere."""
    sweep(bench, "HX-LAY-6")


@clause("HX-TMB-5")
def test_a_near_miss_of_the_id_of_a_tombstone_is_another_tombstone(bench: Bench) -> None:
    """Whichever of the two is applied first."""
    sweep(bench, "HX-TMB-5")


@clause("HX-TMB-3")
def test_a_window_ends_at_no_near_miss_of_its_instants(bench: Bench) -> None:
    """To the microsecond, in any offset."""
    sweep(bench, "HX-TMB-3")


@clause("HX-TMB-9")
def test_a_window_of_one_node_is_of_no_near_miss_of_it(bench: Bench) -> None:
    """As it is asked for, and as it is sealed."""
    sweep(bench, "HX-TMB-9")


@clause("HX-SEG-14")
def test_headers_and_batches_are_strict_json_in_any_spelling(bench: Bench) -> None:
    """Byte order marks, comments, members that stand there twice at any depth; other orders and escapes."""
    sweep(bench, "HX-SEG-14")


@clause("HX-SEG-1")
def test_no_near_miss_of_the_magic_is_it(bench: Bench) -> None:
    """In the header; the bytes in front of it have cases."""
    sweep(bench, "HX-SEG-1")


@clause("HX-SEG-2")
def test_no_near_miss_of_the_version_is_it(bench: Bench) -> None:
    """Numbers by their value, and what is taken for them."""
    sweep(bench, "HX-SEG-2")


@clause("HX-SEG-3")
def test_no_near_miss_of_a_type_is_it(bench: Bench) -> None:
    """A segment that says nearly so."""
    sweep(bench, "HX-SEG-3")


@clause("HX-SEG-4")
def test_no_near_miss_of_a_vault_is_it(bench: Bench) -> None:
    """A vault whose id differs in one digit is another."""
    sweep(bench, "HX-SEG-4")


@clause("HX-SEG-5")
def test_no_near_miss_of_the_node_of_a_segment_is_it(bench: Bench) -> None:
    """Between key and header."""
    sweep(bench, "HX-SEG-5")


@clause("HX-SEG-6")
def test_no_near_miss_of_the_id_of_a_segment_is_it(bench: Bench) -> None:
    """Between key and header, and between two that are published."""
    sweep(bench, "HX-SEG-6")


@clause("HX-SEG-7")
def test_no_near_miss_of_an_instant_dates_a_segment(bench: Bench) -> None:
    """What the standard parsers of several languages read beyond the format."""
    sweep(bench, "HX-SEG-7")


@clause("HX-SEG-8")
def test_no_near_miss_of_an_algorithm_names_it(bench: Bench) -> None:
    """In the header of an object that is sealed with it."""
    sweep(bench, "HX-SEG-8")


@clause("HX-TMB-1")
def test_no_near_miss_of_the_id_in_a_tombstone_is_it(bench: Bench) -> None:
    """Between key and header."""
    sweep(bench, "HX-TMB-1")


@clause("HX-BLB-4")
def test_no_near_miss_of_a_length_is_it(bench: Bench) -> None:
    """Numbers by their value, and what is taken for them."""
    sweep(bench, "HX-BLB-4")


@clause("HX-BLB-5")
def test_no_near_miss_of_a_codec_names_it(bench: Bench) -> None:
    """In the header of a blob that is packed with it."""
    sweep(bench, "HX-BLB-5")


@clause("HX-SEG-13")
def test_a_segment_with_a_near_miss_in_a_record_is_whole_or_refused(bench: Bench) -> None:
    """Every member of every record, sealed again for each."""
    sweep(bench, "HX-SEG-13")


@clause("HX-SEG-15")
def test_no_near_miss_of_an_instant_dates_an_event_or_a_session(bench: Bench) -> None:
    """Sealed again for each."""
    sweep(bench, "HX-SEG-15")


@clause("HX-SEG-10")
def test_a_near_miss_of_the_number_of_an_event_is_another_event(bench: Bench) -> None:
    """Numbers that have the same bits in a narrower type."""
    sweep(bench, "HX-SEG-10")


@clause("HX-TMB-2")
def test_a_window_with_a_near_miss_in_it_is_whole_or_refused(bench: Bench) -> None:
    """Its text, and its two instants."""
    sweep(bench, "HX-TMB-2")


@clause("HX-MAN-1")
def test_a_manifest_with_a_near_miss_in_it_is_whole_or_refused(bench: Bench) -> None:
    """Its text, and what it lists."""
    sweep(bench, "HX-MAN-1")
