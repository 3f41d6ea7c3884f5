"""The suite of mesh-delivery: what its scripts cannot say."""

MODULES = ("suite", "neighbours", "broker", "delivery", "roles", "startup", "server", "send_cases")
