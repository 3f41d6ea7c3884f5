"""The bugs planted in mesh-delivery, by subject."""

from reference_impl.mutants.catalogue import Mutant
from reference_impl.mutants.mesh_delivery import fields, framing, metas

MUTANTS: tuple[Mutant, ...] = (*framing.MUTANTS, *fields.MUTANTS, *metas.MUTANTS)
