"""The suite of rs4a-replay: what its scripts cannot say."""

MODULES = (
    "suite",
    "spellings",
    "neighbours",
    "times",
    "restart",
    "keys",
    "settings",
    "fitness_proofs",
    "missing_constraints",
    "refusal_data",
    "commit_failures",
)
