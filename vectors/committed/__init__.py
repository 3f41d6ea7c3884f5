"""The hand-made source of the committed vectors: `python -m holdfast.vectors.committed` writes `vectors/data` from it.

Documents and expected bytes stand in the modules as they are. No canonicaliser is called anywhere in this package,
so that no canonicaliser's mistakes can become expectations.
"""

from __future__ import annotations

from holdfast.vectors.committed.build import envelope_records, files, fingerprint_records, jcs_records

__all__ = ["envelope_records", "files", "fingerprint_records", "jcs_records"]
