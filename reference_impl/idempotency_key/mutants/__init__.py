"""The bugs planted in idempotency-key, by subject."""
