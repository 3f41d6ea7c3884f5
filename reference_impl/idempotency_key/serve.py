"""An instance of the service: `python -m holdfast.reference_impl.idempotency_key.serve`; see service.toml."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.reference_impl import altered


def clock_of(path: str | None) -> Callable[[], int]:
    """The time in milliseconds: that of a file if one is named, else that of the machine."""
    if path is None:
        return lambda: time.time_ns() // 1_000_000
    return lambda: int(Path(path).read_text())


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the store, or serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--make", action="store_true", help="make the store and end")
    parser.add_argument("--mutant")
    options = parser.parse_args(arguments)
    altered.install(sys.argv[1:] if arguments is None else arguments)
    # Only now, so that an alteration is in what they import.
    from holdfast.reference_impl.idempotency_key.broker import Queue
    from holdfast.reference_impl.idempotency_key.databases import make
    from holdfast.reference_impl.idempotency_key.terms import StoreError

    try:
        if options.make:
            make(os.environ)
            if "QUEUE" in os.environ:
                Queue.make(Path(os.environ["QUEUE"]))
            return 0
        return _serve(options.mutant)
    except StoreError as error:
        print(f"the store cannot be used: {error}; put back a copy, or make a new one with --make", file=sys.stderr)
        return 1


def _serve(mutant: str | None) -> int:
    import uvicorn

    from holdfast.reference_impl.idempotency_key.factory import REFERENCE
    from holdfast.reference_impl.planting import planted

    built = planted(REFERENCE, mutant).build(os.environ, clock_of(os.environ.get("CLOCK_FILE")))
    uvicorn.run(built.app(), host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning", workers=1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
