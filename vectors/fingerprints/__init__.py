"""Keys and fingerprints of requests: committed vectors, and single-field mutations by the million."""

from __future__ import annotations

from holdfast.vectors.fingerprints.record import Fingerprint, load

__all__ = ["Fingerprint", "load"]
