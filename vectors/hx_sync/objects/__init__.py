"""The objects of `hx-sync`: their format, the Zstandard frames of blobs, and what becomes of them in bad hands."""
