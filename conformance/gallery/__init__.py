"""The gallery: published libraries behind small services, and what `idempotency-key` shows of each."""
