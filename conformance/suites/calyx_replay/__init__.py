"""The suite of calyx-replay: what its scripts cannot say."""

MODULES = ("suite", "any_history", "attacks", "amounts", "older", "spellings", "neighbours")
