"""jcs: near misses of the arguments, as `specs/jcs/neighbours.yaml` declares them."""

from __future__ import annotations

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.neighbours import sweep


@clause("JCS-REQ-01")
def test_no_near_miss_of_the_arguments_is_a_request(bench: Bench) -> None:
    """Base64 in other spellings, profiles in other letters, members more and fewer; the good request follows."""
    sweep(bench, "JCS-REQ-01")
