"""What belongs to the contract shelf-once: its keys, independent of the reference."""
