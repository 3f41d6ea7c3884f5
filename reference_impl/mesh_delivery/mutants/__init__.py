"""The bugs planted in mesh-delivery, by subject."""
