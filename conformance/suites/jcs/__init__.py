"""The suite of jcs: what its scripts cannot say."""

MODULES = ("suite", "neighbours")
