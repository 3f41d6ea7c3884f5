"""The suite of idempotency-key: one service, looked at from its clients, its effects, its store and its processes."""

MODULES = ("keys", "responses", "payloads", "races", "crashes", "storage_faults", "scopes", "any_order")
