"""The bugs planted in calyx-replay, by subject."""

# How many methods a bug may override. The store checks its receiver, so a bug in one has to pass the other. A bug in
# the schema also changes the check of the schema.
MOST_METHODS = 6
