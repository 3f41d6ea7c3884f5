"""The suite of rs4a-replay: what its scripts cannot say."""

MODULES = (
    "suite",
    "spellings",
    "neighbours",
    "times",
    "afresh",
    "keys",
    "settings",
    "proofs",
    "loosened",
    "details",
    "lost",
)
