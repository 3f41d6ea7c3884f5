"""The suite of m5-log: what its scripts cannot say."""

# The modules of the suite, in the order of the plan.
MODULES = (
    "suite",
    "operation_matrix",
    "damage",
    "neighbours",
    "encoding",
    "trust_files",
    "payloads",
)
