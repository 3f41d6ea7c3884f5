"""The suite of rs4a-replay: what its scripts cannot say."""

MODULES = ("suite", "spellings", "neighbours", "times", "ddl_changes")
