"""The bugs planted in mesh-delivery, by subject."""

# How many methods a bug may override: what one operation does without a sync is written in one place and committed in
# another, and what a round keeps of one answer it uses for the next.
MOST_METHODS = 3
