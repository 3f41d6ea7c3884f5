"""The bugs planted in rs4a-replay, by subject."""
