"""The bugs planted in jcs, by subject."""
