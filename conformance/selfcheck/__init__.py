"""Whether the cases have teeth: planted bugs, and the baseline adapters."""
