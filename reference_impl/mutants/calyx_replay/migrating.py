"""Bugs of calyx-replay: migrating."""

from __future__ import annotations

from reference_impl.mutants.catalogue import Mutant

MUTANTS: tuple[Mutant, ...] = ()
