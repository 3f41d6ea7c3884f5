"""The bugs planted in calyx-replay, by subject."""

from reference_impl.mutants.calyx_replay import keys, migrating, pruning, receiving, schema, storing, time
from reference_impl.mutants.catalogue import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *keys.MUTANTS,
    *schema.MUTANTS,
    *storing.MUTANTS,
    *receiving.MUTANTS,
    *time.MUTANTS,
    *pruning.MUTANTS,
    *migrating.MUTANTS,
)
