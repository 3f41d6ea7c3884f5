"""The suite of idempotency-key: one service, looked at from its clients, its effects, its store and its processes."""

MODULES = ("keys", "executing", "payloads", "racing", "dying", "losing", "stores", "scopes")
