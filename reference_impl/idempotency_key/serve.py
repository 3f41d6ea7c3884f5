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
        return _serve()
    except StoreError as error:
        print(f"the store cannot be used: {error}; put back a copy, or make a new one with --make", file=sys.stderr)
        return 1


def _serve() -> int:
    import uvicorn

    from holdfast.reference_impl.idempotency_key.app import Application
    from holdfast.reference_impl.idempotency_key.broker import Broker, Queue
    from holdfast.reference_impl.idempotency_key.databases import Databases
    from holdfast.reference_impl.idempotency_key.guard import Fingerprints, Guard
    from holdfast.reference_impl.idempotency_key.keys import Keys
    from holdfast.reference_impl.idempotency_key.records import Records
    from holdfast.reference_impl.idempotency_key.terms import load_limits

    limits, sink = load_limits(), os.environ["SINK_URL"]
    database = Databases().opened(os.environ)
    records = Records(database, lifetime_ms=limits.lifetime_ms, lease_ms=limits.lease_ms)
    guard = Guard(Keys(limits.longest_key), Fingerprints(), records, clock_of(os.environ.get("CLOCK_FILE")))
    queued = "QUEUE" in os.environ
    built = Broker(guard, sink, Queue(Path(os.environ["QUEUE"]))) if queued else Application(guard, sink)
    uvicorn.run(built.app(), host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning", workers=1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
