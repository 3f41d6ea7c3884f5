"""The bugs planted in mesh-delivery, by subject."""

from holdfast.reference_impl.mesh_delivery.mutants import fields, framing, metas
from holdfast.reference_impl.mutants.catalogue import Mutant

MUTANTS: tuple[Mutant, ...] = (*framing.MUTANTS, *fields.MUTANTS, *metas.MUTANTS)
