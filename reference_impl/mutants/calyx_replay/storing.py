"""Bugs of calyx-replay: storing."""

from __future__ import annotations

from reference_impl.mutants.catalogue import Mutant

MUTANTS: tuple[Mutant, ...] = ()
