"""The reference of shelf-once: a shelf on which every name stands once."""
