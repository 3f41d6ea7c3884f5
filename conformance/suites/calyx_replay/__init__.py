"""The suite of calyx-replay: what its scripts cannot say."""

MODULES = ("suite", "attacks", "amounts", "older", "spellings", "neighbours", "keys")
