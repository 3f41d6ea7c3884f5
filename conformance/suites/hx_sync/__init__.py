"""The suite of hx-sync: what its scripts cannot say."""

# The modules of the suite, in the order of the plan.
MODULES = ("suite", "objects", "concurrent", "neighbours", "operation_matrix", "volume")
