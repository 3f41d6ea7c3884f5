"""m5-log: near misses of every argument, as `specs/m5-log/neighbours.yaml` declares them."""

from __future__ import annotations

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.neighbours import sweep


@clause("M5-PUT-6")
def test_no_near_miss_of_the_bytes_of_an_operation_is_that_operation(bench: Bench) -> None:
    """Other spellings of base64url, and bytes more, less or changed."""
    sweep(bench, "M5-PUT-6")


@clause("M5-PUT-2")
def test_no_near_miss_of_an_id_is_the_id_of_an_operation(bench: Bench) -> None:
    """Digests in other letters, of other lengths, or with another digit; members that are not known."""
    sweep(bench, "M5-PUT-2")


@clause("M5-VC-3")
def test_no_near_miss_of_the_bytes_of_a_credential_is_that_credential(bench: Bench) -> None:
    """Other spellings of base64url, and bytes more, less or changed."""
    sweep(bench, "M5-VC-3")


@clause("M5-VC-2")
def test_no_near_miss_of_a_hash_is_the_hash_of_a_credential(bench: Bench) -> None:
    """Digests in other letters, of other lengths, or with another digit."""
    sweep(bench, "M5-VC-2")


@clause("M5-CKP-1")
def test_no_near_miss_of_an_index_is_that_index(bench: Bench) -> None:
    """Numbers of other widths, and texts that resemble them."""
    sweep(bench, "M5-CKP-1")


@clause("M5-CKP-2")
def test_no_near_miss_of_the_id_of_a_checkpoint_is_its_id(bench: Bench) -> None:
    """Loaded or deleted."""
    sweep(bench, "M5-CKP-2")


@clause("M5-REP-1")
def test_no_near_miss_of_a_range_is_that_range(bench: Bench) -> None:
    """Both ends, and the source."""
    sweep(bench, "M5-REP-1")
