"""The bugs planted in hx-sync, by subject."""

from holdfast.reference_impl.hx_sync.mutants import (
    blobs,
    encryption,
    envelopes,
    events,
    forgetting,
    headers,
    importing,
    layout,
    local,
    manifests,
    merging,
    records,
    stores,
    tombstones,
)
from holdfast.reference_impl.mutants.catalogue import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *headers.MUTANTS,
    *records.MUTANTS,
    *blobs.MUTANTS,
    *manifests.MUTANTS,
    *layout.MUTANTS,
    *envelopes.MUTANTS,
    *encryption.MUTANTS,
    *stores.MUTANTS,
    *merging.MUTANTS,
    *events.MUTANTS,
    *tombstones.MUTANTS,
    *forgetting.MUTANTS,
    *importing.MUTANTS,
    *local.MUTANTS,
)
