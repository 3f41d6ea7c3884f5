"""The bugs planted in rs4a-replay, by subject."""

# How many methods a bug may override: what is written without a sync is written in two places, and what one operation
# begins another one sees.
MOST_METHODS = 2
