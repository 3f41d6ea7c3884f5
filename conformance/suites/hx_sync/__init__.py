"""The suite of hx-sync: what its scripts cannot say."""
