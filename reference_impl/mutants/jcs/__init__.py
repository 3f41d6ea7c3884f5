"""The bugs planted in jcs, by subject."""

from reference_impl.mutants.catalogue import Mutant
from reference_impl.mutants.jcs import asking, encoding, grammar, names, numbers, writing

MUTANTS: tuple[Mutant, ...] = (
    *encoding.MUTANTS,
    *grammar.MUTANTS,
    *names.MUTANTS,
    *numbers.MUTANTS,
    *writing.MUTANTS,
    *asking.MUTANTS,
)
