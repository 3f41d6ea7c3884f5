"""The bugs planted in calyx-replay, by subject."""

from reference_impl.mutants.calyx_replay import (
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
from reference_impl.mutants.catalogue import Mutant

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
