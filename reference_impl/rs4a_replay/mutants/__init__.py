"""The bugs planted in rs4a-replay, by subject."""

from holdfast.reference_impl.mutants.catalogue import Mutant
from holdfast.reference_impl.rs4a_replay.mutants import (
    authorization,
    consumption,
    dependence,
    failure,
    identity,
    surface,
    time,
)

MUTANTS: tuple[Mutant, ...] = (
    *identity.MUTANTS,
    *authorization.MUTANTS,
    *consumption.MUTANTS,
    *failure.MUTANTS,
    *time.MUTANTS,
    *surface.MUTANTS,
    *dependence.MUTANTS,
)
