"""The state of a device is a function of the set of objects, for every order, repetition and restart."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hx_sync.devices import artifact, at, event, opened, pin, session, uuid
from tests.hx_sync.model import Model, Segment, Tombstone, shown

BLOBS = (b"one", b"two")
SECONDS = st.integers(0, 5)
SEQ = st.integers(0, 2)
SESSION = st.integers(1, 2)


@st.composite
def segments(draw: st.DrawFn) -> Segment:
    node = draw(st.sampled_from("ab"))
    keys = draw(st.lists(st.tuples(SESSION, SEQ), unique=True, max_size=3))
    batch: dict[str, Any] = {
        "events": [
            event(seq, node=node, session=number, seconds=draw(SECONDS), n=draw(st.integers(0, 1)))
            for number, seq in keys
        ],
        "artifacts": [
            artifact(draw(st.integers(1, 2)), draw(SEQ), draw(st.sampled_from(BLOBS)), session=draw(SESSION))
            for _ in range(draw(st.integers(0, 2)))
        ],
        "sessions": [
            session(draw(SESSION), seconds=draw(SECONDS), title=draw(st.sampled_from("xy")))
            for _ in range(draw(st.integers(0, 1)))
        ],
        "pins": [
            pin(draw(SEQ), node=draw(st.sampled_from("ab")), number=draw(SESSION), pinned=draw(st.booleans()))
            for _ in range(draw(st.integers(0, 1)))
        ],
    }
    return Segment(node, batch)


@st.composite
def tombstones(draw: st.DrawFn) -> Tombstone:
    first, last = sorted((draw(SECONDS), draw(SECONDS)))
    return Tombstone(at(first), at(last), draw(st.sampled_from([None, "a", "b"])))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("template")
    with opened(root):
        pass
    return root


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(segments(), min_size=1, max_size=4),
    st.lists(tombstones(), max_size=2),
    st.lists(st.sampled_from(BLOBS), unique=True),
    st.randoms(use_true_random=False),
)
def test_the_state_is_a_function_of_the_set(
    template: Path, published: list[Segment], forgotten: list[Tombstone], blobs: list[bytes], random: Any
) -> None:
    expected = Model(published, forgotten, blobs).shown()
    with TemporaryDirectory() as folder:
        root = Path(folder, "session")
        shutil.copytree(template, root)
        with opened(root) as devices:
            keys = [
                devices.publish(number, node=each.node, **each.batch) for number, each in enumerate(published, start=1)
            ]
            keys += [devices.blob(blob) for blob in blobs]
            for number, each in enumerate(forgotten, start=1):
                scope = {} if each.of is None else {"of": each.of}
                key = devices.parts.layout.tombstone(uuid(number))
                start, end = (float(text) for text in (_seconds(each.start), _seconds(each.end)))
                assert devices.forget(number, start, end, node="b", **scope) == key
                keys.append(key)
            # One device imports everything at once, one object by object and some of them twice.
            devices.accepted("import", node="a")
            order = [*keys, *random.sample(keys, len(keys) // 2)]
            random.shuffle(order)
            for key in order[: len(order) // 2]:
                devices.accepted("import_object", node="c", key=key)
        with opened(root) as devices:
            for key in order[len(order) // 2 :]:
                devices.accepted("import_object", node="c", key=key)
            # The third forgot before it knew of anything.
            devices.accepted("import", node="b")
            for node in "abc":
                assert shown(devices.state(node)) == expected, node
            assert len({devices.digest(node) for node in "abc"}) == 1
            devices.accepted("rebuild", node="c")
            assert devices.digest("c") == devices.digest("a")
            assert devices.accepted("import", node="c")["effect"] == "prior"


def _seconds(text: str) -> float:
    return next(second for second in range(6) if at(second) == text)
