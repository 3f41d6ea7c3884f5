"""calyx-replay: near misses of every argument and of everything in an envelope, as `specs/calyx-replay/neighbours.yaml`
declares them."""

from __future__ import annotations

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.neighbours import sweep


@clause("CALYX-KEY-6")
def test_no_near_miss_of_the_spelling_of_an_envelope_is_delivered(bench: Bench) -> None:
    """The base64url around it, and the JSON document in it; beside the envelope, and before it comes."""
    sweep(bench, "CALYX-KEY-6")


@clause("CALYX-KEY-4a")
def test_no_near_miss_of_the_protocol_version_is_the_protocol_version(bench: Bench) -> None:
    """Signed by the sender."""
    sweep(bench, "CALYX-KEY-4a")


@clause("CALYX-SCH-14")
def test_a_near_miss_of_a_message_id_is_another_one_or_none(bench: Bench) -> None:
    """Signed by the sender."""
    sweep(bench, "CALYX-SCH-14")


@clause("CALYX-KEY-4b")
def test_a_near_miss_of_a_member_of_the_header_makes_another_envelope(bench: Bench) -> None:
    """The near miss comes second or first, and is refused when it comes again."""
    sweep(bench, "CALYX-KEY-4b")


@clause("CALYX-KEY-4c")
def test_a_near_miss_of_a_ciphertext_makes_another_envelope(bench: Bench) -> None:
    """Wherever it differs, up to 65,536 characters from the front."""
    sweep(bench, "CALYX-KEY-4c")


@clause("CALYX-ALG-10")
def test_no_near_miss_of_a_sender_is_the_sender(bench: Bench) -> None:
    """Fingerprint and key, signed with the key of the sender."""
    sweep(bench, "CALYX-ALG-10")


@clause("CALYX-KEY-7")
def test_no_near_miss_of_a_signature_signs(bench: Bench) -> None:
    """Each beside the delivered envelope."""
    sweep(bench, "CALYX-KEY-7")


@clause("CALYX-ALG-9")
def test_no_near_miss_of_an_instant_dates_an_envelope(bench: Bench) -> None:
    """What the standard parsers of several languages read beyond the format."""
    sweep(bench, "CALYX-ALG-9")


@clause("CALYX-PRN-7")
def test_a_retention_is_the_number_that_was_asked_for(bench: Bench) -> None:
    """Numbers of every width, with a fraction and without, and what is no number."""
    sweep(bench, "CALYX-PRN-7")


@clause("CALYX-MIG-4")
def test_the_id_of_a_lost_envelope_blocks_no_near_miss_of_it(bench: Bench) -> None:
    """The near miss is listed and the id arrives, or the other way round."""
    sweep(bench, "CALYX-MIG-4")


@clause("CALYX-MIG-7")
def test_no_other_spelling_of_an_envelope_of_version_0_is_migrated(bench: Bench) -> None:
    """Each refused as a whole, with nothing stored."""
    sweep(bench, "CALYX-MIG-7")
