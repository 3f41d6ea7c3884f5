"""The bugs planted in hx-sync, by subject."""

# How many methods a bug may override: objects are written and read, and a bug that writes another
# format has to read it.
MOST_METHODS = 3
