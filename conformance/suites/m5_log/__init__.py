"""The suite of m5-log: what its scripts cannot say."""

# The modules of the suite, in the order of the plan.
MODULES = ("suite", "published", "each", "damaged", "neighbours", "strict", "trusting", "contents", "rows")
