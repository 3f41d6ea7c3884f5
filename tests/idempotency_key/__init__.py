"""The reference of idempotency-key."""
