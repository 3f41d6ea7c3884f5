"""The contract shelf-once: a shelf on which every name stands once."""
