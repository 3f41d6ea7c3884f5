"""The contract shelf-once."""
