"""The commands of an operator, one method each, on a session of their device."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from holdfast.reference_impl import base64url
from holdfast.reference_impl.answers import Accepted, Answer, Fault, Ok, Refused
from holdfast.reference_impl.hx_sync.service import Parts, Service
from holdfast.reference_impl.hx_sync.terms import Reason, RefusedError
from holdfast.reference_impl.sqlite import StoreError
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import loads

DONE, REFUSED, USAGE = 0, 1, 2
_WHAT_TO_DO = {
    Reason.KEY_INVALID: "give the vault key of 64 hexadecimal digits, see `hx init --help`",
    Reason.STORE_UNAVAILABLE: "look whether the store is mounted and the index whole; `hx init` makes a lost one",
    Reason.NODE_UNKNOWN: "make the device with `hx init`",
    Reason.NODE_EXISTS: "choose another --node",
    Reason.SEGMENT_MALFORMED: "publish events of this device only, each once",
    Reason.TOMBSTONE_MALFORMED: "choose a start that is not after now, like 2026-01-01T00:00:00Z",
    Reason.OBJECT_EXISTS: "choose another id; what was published is never changed",
}


def complain(text: str, *, status: int = REFUSED) -> int:
    """One line on standard error; the exit status."""
    print(f"error: {text}", file=sys.stderr)
    return status


def answered(answer: Answer, tell: Callable[[Any], Any]) -> int:
    if isinstance(answer, Accepted | Ok):
        print(tell(answer.value))
        return DONE
    if isinstance(answer, Refused):
        return complain(
            f"{answer.reason}: {answer.detail}; to do: {_WHAT_TO_DO.get(Reason(answer.reason), 'see --help')}"
        )
    if isinstance(answer, Fault):
        return complain(f"{answer.detail}; to do: {_WHAT_TO_DO[Reason.STORE_UNAVAILABLE]}")
    return complain(f"it is unknown whether it was done: {answer}; to do: run it again, which is safe")


class Commands:
    """Each method runs one command and returns the exit status."""

    def __init__(self, parts: Parts, node: str, *, now: datetime) -> None:
        self._service = Service(parts, now=now)
        self._service.begin()
        self._parts = parts
        self._node = node
        self._now = now

    def run(self, name: str, options: argparse.Namespace) -> int:
        """The command of this name."""
        known: dict[str, Callable[[argparse.Namespace], int]] = {
            "publish": self.publish,
            "import": self.import_all,
            "forget": self.forget,
            "sync status": self.status,
            "verify": self.verify,
        }
        return known[name](options)

    def _call(self, method: str, **args: Any) -> Answer:
        return self._service.call(method, {"node": self._node, **args})

    # Publishing

    def publish(self, options: argparse.Namespace) -> int:
        """A batch, a blob, or the manifest."""

        def tell(value: Any) -> str:
            return f"published {value['key']}"

        if options.manifest:
            return answered(self._call("publish_manifest"), tell)
        try:
            if options.blob is not None:
                return answered(self._call("publish_blob", bytes=base64url.write(options.blob.read_bytes())), tell)
            raw = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
            batch = self._own(loads(raw))
        except OSError as error:
            return complain(f"expected a readable file: {error}", status=USAGE)
        except StrictJsonError as error:
            return complain(f"expected a batch as JSON: {error}", status=USAGE)
        return answered(self._call("publish", segment_id=options.segment_id or str(uuid4()), batch=batch), tell)

    def _own(self, batch: Any) -> Any:
        """A batch in which events without a node belong to this device."""
        status = self._call("status")
        if not isinstance(batch, dict) or not isinstance(status, Ok) or status.value is None:
            return batch
        mine = {"node_id": status.value["node_id"]}

        def filled(records: Any) -> Any:
            return [{**mine, **each} if isinstance(each, dict) else each for each in records]

        return {
            name: filled(found) if name in ("events", "pins") and isinstance(found, list) else found
            for name, found in batch.items()
        }

    # Importing

    def import_all(self, _: argparse.Namespace) -> int:
        """Everything from the store."""

        def tell(value: Any) -> str:
            lines = [f"imported {value['imported']}, skipped {value['skipped']}"]
            lines += [f"rejected {each['reason']} {each['key']!a}" for each in value["rejected"]]
            lines += [f"foreign {key!a}" for key in value["foreign"]]
            return "\n".join(lines)

        return answered(self._call("import"), tell)

    # Forgetting

    def forget(self, options: argparse.Namespace) -> int:
        """A window from --since to --until, or to now."""
        scope = {} if options.of is None else {"node_id": options.of}
        answer = self._call(
            "forget",
            tombstone_id=options.tombstone_id or str(uuid4()),
            start_ts=options.since,
            end_ts=options.until or self._now.isoformat(),
            **scope,
        )
        return answered(
            answer, lambda value: f"forgot {value['start_ts']} to {value['end_ts']}\npublished {value['key']}"
        )

    # Inspection

    def status(self, _: argparse.Namespace) -> int:
        """The state of the device, and the objects that it misses."""
        status, state = self._call("status"), self._call("state")
        if not isinstance(status, Ok):
            return answered(status, str)
        if not isinstance(state, Ok):
            return answered(state, str)
        self._report(status.value, state.value)
        return DONE

    def _report(self, value: Any, shown: Any) -> None:
        print(f"device {self._node} {value['node_id']}")
        for name in ("segments", "blobs", "tombstones", "events", "forgotten"):
            print(f"{name} {value[name]}")
        print(f"sessions {len(shown['sessions'])}, artifacts {len(shown['artifacts'])}, pins {len(shown['pins'])}")
        for name in ("conflicts", "rejected", "foreign", "withheld"):
            print(f"{name} {len(value[name])}")
            for each in value[name]:
                print(f"  {json.dumps(each, sort_keys=True)}")
        print(f"digest {shown['digests'][0]['digest']}")

    def verify(self, _: argparse.Namespace) -> int:
        """Every object in the store as an import would, without importing it."""
        parts = self._parts
        try:
            master = parts.master()
            places, foreign = parts.importing.sorted_out(parts.store.list(parts.layout.objects))
            bad: dict[str, str] = {}
            for place in places:
                try:
                    parts.objects.verify(place.key, master)
                except RefusedError as error:
                    bad[place.key] = error.reason.value
        except RefusedError as error:
            return answered(error.answer(), str)
        except StoreError as error:
            return answered(RefusedError(Reason.STORE_UNAVAILABLE, str(error)).answer(), str)
        print(f"sound {len(places) - len(bad)}, rejected {len(bad)}, foreign {len(foreign)}")
        for key, reason in sorted(bad.items()):
            print(f"rejected {reason} {key!a}")
        for key in foreign:
            print(f"foreign {key!a}")
        return REFUSED if bad else DONE
