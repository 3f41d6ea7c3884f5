"""The objects of `hx-sync`: their format, the Zstandard frames of blobs, and the changes of an attacker."""
