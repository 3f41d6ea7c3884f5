"""The suite of calyx-replay: what its scripts cannot say."""

MODULES = ("suite", "amounts", "older", "neighbours")
