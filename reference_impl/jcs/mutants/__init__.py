"""The bugs planted in jcs, by subject."""

from holdfast.reference_impl.jcs.mutants import asking, encoding, grammar, names, numbers, writing
from holdfast.reference_impl.mutants.catalogue import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *encoding.MUTANTS,
    *grammar.MUTANTS,
    *names.MUTANTS,
    *numbers.MUTANTS,
    *writing.MUTANTS,
    *asking.MUTANTS,
)
