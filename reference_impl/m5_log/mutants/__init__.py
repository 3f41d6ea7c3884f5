"""The bugs planted in m5-log, by subject."""

# How many methods a bug may override: what is written in another format has to be read in it.
MOST_METHODS = 3
