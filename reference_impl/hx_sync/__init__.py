"""The reference implementation of hx-sync: replicated objects, their envelope, two stores, deterministic import."""
