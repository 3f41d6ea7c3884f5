"""`shelf` is a project of its own, which the tests install."""

collect_ignore = ["shelf"]
