"""Planted bugs. The reference carries no switches: a mutant replaces exactly one method or one loaded value."""

from holdfast.reference_impl.mutants.catalogue import Mutant, all_mutants, find

__all__ = ["Mutant", "all_mutants", "find"]
