"""The reference behind a decoder that leaves line breaks out of base64, as those of many languages do."""

from __future__ import annotations

import subprocess
import sys

reference = subprocess.Popen(
    [sys.executable, "-P", "-m", "holdfast.reference_impl", "adapter"], stdin=subprocess.PIPE, stdout=sys.stdout
)
assert reference.stdin is not None
for line in sys.stdin.buffer:
    reference.stdin.write(line.replace(rb"\n", b""))
    reference.stdin.flush()
reference.stdin.close()
sys.exit(reference.wait())
