"""jcs: near misses of the arguments, as `specs/jcs/neighbours.yaml` declares them."""

from __future__ import annotations

from holdfast.conformance.attacks.near_miss import swept

TESTS = swept(
    __name__,
    # Base64 in other spellings, profiles in other letters, members more and fewer; the good request follows.
    test_no_near_miss_of_the_arguments_is_a_request="JCS-REQ-01",
)
