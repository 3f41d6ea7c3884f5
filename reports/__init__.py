"""Evidence of runs: writing it, reading it back, checking its chain, rendering it."""
