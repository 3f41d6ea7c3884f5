"""shelf-once: what a script cannot say."""
