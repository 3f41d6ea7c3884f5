"""An adapter for any HTTP service that has a service.toml: `python -m holdfast.conformance.adapter.service FILE`.

It puts the kit's wires (`holdfast.servers.wires`) around the service, and answers the methods of its contract.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast import __version__
from holdfast.conformance.adapter.lines import answer_lines
from holdfast.servers.wires.instances import EndedError
from holdfast.servers.wires.profile import CONTRACT, ProfileError, Service, read
from holdfast.servers.wires.world import ServiceEnvironment, UseError, not_claimed
from holdfast.specs import version_of

_ONE_WORKER = "one worker has several instances of the service"


class Around:
    """The wires around a service, one session after the other."""

    def __init__(self, service: Service, name: str) -> None:
        self._service, self._name = service, name
        self._world: ServiceEnvironment | None = None

    def answer(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The members of the answer."""
        try:
            return self._answered(request)
        except (UseError, EndedError) as error:
            return {"outcome": "fault", "detail": str(error)}

    def _answered(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        match request["op"]:
            case "hello":
                return self._hello(request)
            case "bye":
                self.close()
            case "open":
                self.close()
                self._world = ServiceEnvironment(
                    self._service,
                    Path(request["workdir"]),
                    fresh=request["state"] == "fresh",
                    now=_milliseconds(request["clock"]),
                )
            case "close":
                self.close()
            case _ if self._world is None:
                return {"outcome": "fault", "detail": "no session is open"}
            case "clock":
                self._world.set_clock(_milliseconds(request["now"]))
            case "call":
                return self._world.answer(request["method"], request.get("args", {}))
            case other:
                return {"outcome": "fault", "detail": f"unknown op {other!r}"}
        return {"outcome": "ok"}

    def _hello(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        lacking = {"concurrency": _ONE_WORKER, "kill": _ONE_WORKER, **not_claimed(self._service)}
        return {
            "ok": {
                "protocol": 1,
                "challenge": request["challenge"],
                "implementation": {"name": self._name, "version": __version__, "language": "any"},
                "claims": [{"contract": CONTRACT, "version": version_of(CONTRACT), "not_claimed": lacking}],
                "limits": {"workers": 1},
            }
        }

    def close(self) -> None:
        """End the session, if one is open."""
        world, self._world = self._world, None
        if world is not None:
            world.close()


def _milliseconds(instant: str) -> int:
    return round(datetime.fromisoformat(instant).timestamp() * 1000)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve on standard input and output until `bye` or end of file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    file: Path = parser.parse_args(arguments).file
    try:
        around = Around(read(file), file.parent.name or "service")
    except ProfileError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        answer_lines(around.answer)
    finally:
        around.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
