"""`holdfast verify`: run the cases of the claimed contracts against an adapter, and report what was shown."""
