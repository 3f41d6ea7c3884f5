"""The bugs planted in idempotency-key that are no patches."""
