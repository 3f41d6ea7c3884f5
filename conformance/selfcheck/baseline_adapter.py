"""The baseline adapters of `baselines`, each as a process: `accept-all` or `refuse-all`, and what it claims."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.conformance.run.baselines import Policy, sample
from holdfast.specs import Contract, Method, kept_terms
from holdfast.specs.model import Group


def _answer(policy: Policy, method: Method) -> dict[str, Any]:
    value = None if method.result is None else sample(method.result.schema, method.result.schema)
    extra = {} if value is None else {"value": value}
    if method.group is not Group.OPERATION:
        return {"outcome": "ok", **extra}
    if policy is Policy.REFUSE_ALL:
        # The last reason is the one for the most specific check, as contracts list them.
        return {"outcome": "refused", "reason": method.reasons[-1]}
    return {"outcome": "accepted", "effect": method.effects[0], **extra}


def _hello(policy: Policy, request: Mapping[str, Any], contracts: Mapping[str, Contract]) -> dict[str, Any]:
    return {
        "protocol": 1,
        "challenge": request["challenge"],
        "implementation": {"name": policy.value, "version": "1.0.0", "language": "python"},
        "claims": [{"contract": c.name, "version": c.version, "not_claimed": {}} for c in contracts.values()],
        "limits": {"workers": 64},
    }


def serve(policy: Policy, names: Sequence[str]) -> None:
    """Answer every request on standard input until `bye` or end of file."""
    contracts = {name: kept_terms(name) for name in names}
    opened: Contract | None = None
    for line in sys.stdin:
        request = json.loads(line)
        reply: dict[str, Any]
        if request["op"] == "hello":
            reply = {"ok": _hello(policy, request, contracts)}
        elif request["op"] == "call" and opened is not None:
            reply = _answer(policy, opened.methods[request["method"]])
        else:
            if request["op"] == "open":
                opened = contracts[request["contract"]]
            reply = {"outcome": "ok"}
        sys.stdout.write(json.dumps({"id": request["id"], **reply}) + "\n")
        sys.stdout.flush()
        if request["op"] == "bye":
            return


if __name__ == "__main__":
    serve(Policy(sys.argv[1]), sys.argv[2:])
