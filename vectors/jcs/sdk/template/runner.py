"""A runner to copy: translate it into your language, or keep it if that is Python. Run as `python runner.py`.

Nothing but frames may come out on standard output: let no library print there.
"""

from __future__ import annotations

import json
import sys


def canonicalise(document: bytes) -> bytes:
    """Your pipeline, exactly as your users run it: it is what is judged. Parse with the parser they would use."""
    return json.dumps(json.loads(document), sort_keys=True, separators=(",", ":")).encode()


def main() -> None:
    """Frames in, frames out."""
    documents, answers = sys.stdin.buffer, sys.stdout.buffer
    # In: the length as four bytes, big-endian, then the document. The end of the input is the end.
    while length := documents.read(4):
        document = documents.read(int.from_bytes(length, "big"))
        try:
            status, body = b"C", canonicalise(document)
        # Only what the parser and the library raise on a document they do not take is a refusal. Never catch
        # everything: a bug or an exhausted stack has to end the process, which the kit sees and reports as what it is.
        except ValueError as refusal:
            status, body = b"R", str(refusal).encode("utf-8", "replace")
        # Out: the length of the body as four bytes, the status (C canonical, R refused), the body.
        answers.write(len(body).to_bytes(4, "big") + status + body)
        # An answer must never wait in a buffer while this waits for the next document. Always flushing is right;
        # flushing only when no input is at hand is right and faster (see the runners of the kit).
        answers.flush()


main()
