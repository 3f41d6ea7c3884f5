"""Processes that die, and processes that compute the same."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from holdfast.vectors.m5_log import derive
from tests.m5_log.logs import Box, draft, id_of, random_drafts

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2])}


def program(text: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", textwrap.dedent(text), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**ENVIRONMENT, **environment},
    )


APPENDING = """
    import base64, sys
    from pathlib import Path
    from holdfast.reference_impl.m5_log.factory import REFERENCE
    parts = REFERENCE.parts(Path(sys.argv[1]), {})
    for spelt in sys.argv[2:]:
        put = parts.log.put(base64.urlsafe_b64decode(spelt + "=" * (-len(spelt) % 4)))
        print(put.op_id.hex(), flush=True)
"""

# The process dies as soon as it has reached a step of its last commit.
DYING = """
    import base64, os, signal, sys
    from pathlib import Path
    from holdfast.reference_impl.m5_log.factory import REFERENCE
    parts = REFERENCE.parts(Path(sys.argv[1]), {})
    step, before = sys.argv[2], sys.argv[3] == "before"
    parts.log.put(base64.urlsafe_b64decode(sys.argv[4] + "=" * (-len(sys.argv[4]) % 4)))
    done = getattr(parts.store, step)
    def dying(*args):
        if not before:
            done(*args)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(parts.store, step, dying)
    parts.log.put(base64.urlsafe_b64decode(sys.argv[5] + "=" * (-len(sys.argv[5]) % 4)))
"""

REPLAYING = """
    import json, sys
    from pathlib import Path
    from holdfast.reference_impl.m5_log.factory import REFERENCE
    parts = REFERENCE.parts(Path(sys.argv[1]), {})
    with parts.store.reading() as opened:
        full = parts.replay.full(opened)
        latest = parts.replay.latest(opened)
        show = parts.snapshots
        print(json.dumps([show.json(full), show.json(latest.state), show.encode(full).hex(), latest.checkpoint_id]))
"""


@pytest.mark.parametrize("acknowledged", [1, 5, 11])
def test_what_was_acknowledged_before_a_kill_is_there(box: Box, acknowledged: int) -> None:
    drafts = [draft(ms) for ms in range(40)]
    child = program(APPENDING, str(box.root), *(derive.op(each) for each in drafts))
    assert child.stdout is not None
    told = [child.stdout.readline().strip() for _ in range(acknowledged)]
    child.send_signal(signal.SIGKILL)
    told += child.stdout.read().split()
    child.wait()
    child.stdout.close()
    order = box.order()
    assert set(told) <= set(order)
    assert order == [id_of(each) for each in drafts][: len(order)]
    for each in drafts[: len(order)]:
        assert box.parts.observing.get_op(bytes.fromhex(id_of(each)))["op"] == derive.op(each)
    assert box.problems() == []
    assert box.full() == derive.state({"ops": drafts[: len(order)]})
    box.put_all(drafts)
    assert box.full() == derive.state({"ops": drafts})


@pytest.mark.parametrize(
    ("step", "when", "there"),
    [("write", "before", 1), ("write", "after", 2), ("attest", "before", 2), ("attest", "after", 2)],
)
def test_a_batch_is_there_whole_or_not_at_all_wherever_the_process_dies(
    box: Box, step: str, when: str, there: int
) -> None:
    first, second = draft(1), draft(2, parents=[id_of(draft(1))])
    child = program(DYING, str(box.root), step, when, derive.op(first), derive.op(second))
    assert child.wait() == -signal.SIGKILL
    assert child.stdout is not None
    child.stdout.close()
    assert box.problems() == []
    assert box.order() == [id_of(first), id_of(second)][:there]
    assert box.put(second).new is (there == 1)
    assert box.order() == [id_of(first), id_of(second)]
    assert box.problems() == []


def test_a_restore_equals_a_full_replay_in_processes_with_other_hash_seeds(box: Box) -> None:
    box.trust("iss")
    says = {"issuer": "iss", "subject": "alice", "role": "r", "scope": ["t"], "nbf": 0, "exp": 99}
    spelt = derive.credential(says)
    drafts = [
        *random_drafts(11, 25),
        draft(0, kind="credential", credential=spelt),
        draft(3, by="bob", kind="grant", subject="alice", role="r", tag="t", credential=derive.cred_hash(spelt)),
        draft(5, kind="add", key="c0", amount=1000, tag="t"),
        draft(5, by="bob", kind="add", key="c0", amount=5000, tag="t"),
    ]
    box.put_all(drafts[:20])
    box.parts.log.checkpoint_create()
    box.put_all(drafts[20:])
    box.parts.log.checkpoint_create(len(box.order()) // 2)
    box.parts.store.release()
    expected = derive.state({"ops": drafts, "credentials": [says], "issuers": ["iss"]})
    told = []
    for seed in ("0", "1", "4242"):
        child = program(REPLAYING, str(box.root), PYTHONHASHSEED=seed, TZ=f"UTC{seed[0]}")
        told.append(json.loads(child.communicate()[0]))
        assert child.returncode == 0
    assert all(each == told[0] for each in told)
    assert told[0][:2] == [expected, expected]
    assert told[0][3] == 2


def test_a_copy_under_another_path_has_the_same_state(box: Box, tmp_path: Path) -> None:
    drafts = random_drafts(3, 12)
    box.put_all(drafts)
    box.parts.log.checkpoint_create()
    # As it lies there while it is open: the copy opens like a store after a crash.
    other = tmp_path / "elsewhere"
    shutil.copytree(box.root / "m5", other / "m5")
    copy = Box(other)
    assert copy.full() == copy.latest()[0] == box.full() == derive.state({"ops": drafts})
    assert copy.problems() == []


def test_two_processes_never_write_past_each_other(box: Box) -> None:
    drafts = [draft(ms) for ms in range(30)]
    children = [
        program(APPENDING, str(box.root), *(derive.op(each) for each in part)) for part in (drafts[:15], drafts[15:])
    ]
    told = [id_of_line for child in children for id_of_line in child.communicate()[0].split()]
    assert box.problems() == []
    assert set(box.order()) == set(told)
