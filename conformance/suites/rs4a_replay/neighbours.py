"""rs4a-replay: near misses of every argument, as `specs/rs4a-replay/neighbours.yaml` declares them."""

from __future__ import annotations

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.near_miss import sweep, swept

TESTS = swept(
    __name__,
    # Owner, run and protocol version enter the keys whole; the others do not enter them.
    test_the_keys_cover_no_near_miss_of_a_member="RS4A-ID-12",
    # Each spelling of a target has its keys, and what cannot be brought to the normal form is malformed.
    test_no_near_miss_of_a_target_without_a_normal_form_is_a_target="RS4A-ID-3",
    # The attested, the deployed and the claimed one, compared to the last digit and read in either case.
    test_no_near_miss_of_a_hash_is_the_hash="RS4A-ID-4",
    # What the standard parsers of several languages read beyond the format.
    test_no_near_miss_of_an_instant_dates_a_request="RS4A-TTL-1",
    # The authority is as strict as the registrar.
    test_no_near_miss_of_a_binding_or_a_window_is_issued="RS4A-ID-1",
    # The value may be the bound one and the near miss the presented one, or the other way round.
    test_a_bound_nonce_serves_no_near_miss_of_what_it_is_bound_to="RS4A-RP-04",
    # Beside an issued one, and beside a consumed one.
    test_no_near_miss_of_a_nonce_is_issued_or_consumed="RS4A-ID-9",
    # The answer holds no decision.
    test_a_retry_with_a_near_miss_of_its_nonce_is_no_exact_retry="RS4A-RP-02",
    # Target, owner and artifact; the near miss is registered second or first.
    test_a_near_miss_of_an_identity_is_another_request="RS4A-ID-2",
    # It is another request, and the nonce is consumed.
    test_a_consumed_nonce_is_not_retried_by_a_near_miss_of_its_target="RS4A-ID-7",
    # Attempt, run and protocol version are no part of the logical identity.
    test_no_near_miss_of_a_try_makes_another_request="RS4A-RP-01",
    # The status is that of this very key.
    test_no_near_miss_of_a_consumed_key_is_committed="RS4A-S1-2",
)


@clause("RS4A-S3-3", provocations=("fail_verify",))
def test_no_near_miss_buys_a_compensation(bench: Bench) -> None:
    """A compensation compares as strictly as a registration."""
    sweep(bench, "RS4A-S3-3")
