"""An engine whose adapter has said hello, for the commands beside `holdfast verify`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from holdfast.conformance.adapter.pool import Exhausted
from holdfast.conformance.adapter.worker import Greeting, GreetingError
from holdfast.conformance.cli.console import stop
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.settings import RunSettings
from holdfast.conformance.verdict import Exit
from holdfast.servers.errors import StartError
from holdfast.specs import Contract


@contextlib.contextmanager
def greeted(settings: RunSettings, contracts: Sequence[Contract]) -> Iterator[tuple[Engine, Greeting]]:
    """The engine, and what the adapter said, which has to claim these contracts. Ends with a message if it does not."""
    try:
        with Engine(settings) as engine:
            greeting = engine.greet()
            for each in contracts:
                claim = greeting.claim(each.name)
                if claim is None or claim.version != each.version:
                    stop(Exit.ADAPTER, f"expected the adapter to claim {each.name} {each.version}; it does not")
                engine.provision(each.name)
            yield engine, greeting
    except GreetingError as error:
        log = error.log.strip()
        shown = f"; its standard error ends: {log[-400:]}" if log else ""
        stop(Exit.ADAPTER, f"the adapter failed before any case: {error.event.detail}{shown}")
    except (StartError, Exhausted) as error:
        stop(Exit.ADAPTER, f"the adapter failed before any case: {error}")
