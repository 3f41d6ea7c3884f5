"""Clean, fail-closed reference implementations of the contracts, one package each, and the bugs planted in them.

Nothing here knows the harness: it meets this code only through an adapter process.
"""

__version__ = "0.1.0"
