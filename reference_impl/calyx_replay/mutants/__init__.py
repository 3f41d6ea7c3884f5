"""The bugs planted in calyx-replay, by subject."""

from holdfast.reference_impl.calyx_replay.mutants import (
    durability,
    keys,
    migrating,
    pruning,
    receiving,
    rows,
    schema,
    spellings,
    storing,
    time,
)
from holdfast.reference_impl.mutants.catalogue import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *keys.MUTANTS,
    *spellings.MUTANTS,
    *schema.MUTANTS,
    *rows.MUTANTS,
    *storing.MUTANTS,
    *receiving.MUTANTS,
    *durability.MUTANTS,
    *time.MUTANTS,
    *pruning.MUTANTS,
    *migrating.MUTANTS,
)
