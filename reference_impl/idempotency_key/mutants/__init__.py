"""The bugs planted in idempotency-key, by subject."""

# How many methods a bug may override: a namespace is in the scope of a key and in its fingerprint.
MOST_METHODS = 2
