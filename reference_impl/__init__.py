"""Reference implementations of the contracts, one fail-closed package each, with the bugs planted in them.

No module here knows the harness. The harness reaches this code only through an adapter process.
"""

__version__ = "0.1.0"
