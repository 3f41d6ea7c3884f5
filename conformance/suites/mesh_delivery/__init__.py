"""The suite of mesh-delivery: what its scripts cannot say."""

MODULES = ("suite", "neighbours", "broker", "delivering", "both", "starting", "on_the_server", "sending", "holding")
