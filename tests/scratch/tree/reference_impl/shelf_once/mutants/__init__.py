"""The bugs planted in shelf-once."""
