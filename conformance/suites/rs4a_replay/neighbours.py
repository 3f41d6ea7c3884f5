"""rs4a-replay: near misses of every argument, as `specs/rs4a-replay/neighbours.yaml` declares them."""

from __future__ import annotations

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.neighbours import sweep


@clause("RS4A-ID-12")
def test_the_keys_cover_no_near_miss_of_a_member(bench: Bench) -> None:
    """Owner, run and protocol version enter the keys whole; the others do not enter them."""
    sweep(bench, "RS4A-ID-12")


@clause("RS4A-ID-3")
def test_no_near_miss_of_a_target_without_a_normal_form_is_a_target(bench: Bench) -> None:
    """Each spelling of a target has its keys, and what cannot be brought to the normal form is malformed."""
    sweep(bench, "RS4A-ID-3")


@clause("RS4A-ID-4")
def test_no_near_miss_of_a_hash_is_the_hash(bench: Bench) -> None:
    """The attested, the deployed and the claimed one, compared to the last digit and read in either case."""
    sweep(bench, "RS4A-ID-4")


@clause("RS4A-TTL-1")
def test_no_near_miss_of_an_instant_dates_a_request(bench: Bench) -> None:
    """What the standard parsers of several languages read beyond the format."""
    sweep(bench, "RS4A-TTL-1")


@clause("RS4A-ID-1")
def test_no_near_miss_of_a_binding_or_a_window_is_issued(bench: Bench) -> None:
    """The authority is as strict as the registrar."""
    sweep(bench, "RS4A-ID-1")


@clause("RS4A-RP-04")
def test_a_bound_nonce_serves_no_near_miss_of_what_it_is_bound_to(bench: Bench) -> None:
    """The value may be the bound one and the near miss the presented one, or the other way round."""
    sweep(bench, "RS4A-RP-04")


@clause("RS4A-ID-9")
def test_no_near_miss_of_a_nonce_is_issued_or_consumed(bench: Bench) -> None:
    """Beside an issued one, and beside a consumed one."""
    sweep(bench, "RS4A-ID-9")


@clause("RS4A-RP-02")
def test_a_retry_with_a_near_miss_of_its_nonce_is_no_exact_retry(bench: Bench) -> None:
    """The answer holds no decision."""
    sweep(bench, "RS4A-RP-02")


@clause("RS4A-ID-2")
def test_a_near_miss_of_an_identity_is_another_request(bench: Bench) -> None:
    """Target, owner and artifact; the near miss is registered second or first."""
    sweep(bench, "RS4A-ID-2")


@clause("RS4A-ID-7")
def test_a_consumed_nonce_is_not_retried_by_a_near_miss_of_its_target(bench: Bench) -> None:
    """It is another request, and the nonce is consumed."""
    sweep(bench, "RS4A-ID-7")


@clause("RS4A-RP-01")
def test_no_near_miss_of_a_try_makes_another_request(bench: Bench) -> None:
    """Attempt, run and protocol version are no part of the logical identity."""
    sweep(bench, "RS4A-RP-01")


@clause("RS4A-S1-2")
def test_no_near_miss_of_a_consumed_key_is_committed(bench: Bench) -> None:
    """The status is that of this very key."""
    sweep(bench, "RS4A-S1-2")


@clause("RS4A-S3-3", provocations=("fail_verify",))
def test_no_near_miss_buys_a_compensation(bench: Bench) -> None:
    """A compensation compares as strictly as a registration."""
    sweep(bench, "RS4A-S3-3")
