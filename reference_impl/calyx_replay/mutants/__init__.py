"""The bugs planted in calyx-replay, by subject."""

# How many methods a bug may override. The store checks what its receiver does, so that a bug in one has to get past the
# other, and a schema that lacks something has to be taken for the right one.
MOST_METHODS = 6
