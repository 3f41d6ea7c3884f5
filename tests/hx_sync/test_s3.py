"""The store in S3, over HTTP on the loopback: conditional puts, all pages, and never in place of another."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.backends import get_backend
from moto.server import ThreadedMotoServer

from holdfast.reference_impl.hx_sync import operate
from holdfast.reference_impl.hx_sync.layout import Layout
from holdfast.reference_impl.hx_sync.s3 import S3Store
from holdfast.reference_impl.hx_sync.service import Parts, Service
from holdfast.reference_impl.hx_sync.storage import Put
from holdfast.reference_impl.sqlite import StoreError
from tests.hx_sync.devices import NOW, VAULT, Devices, event, uuid

LAYOUT = Layout("HXSync", VAULT.rpartition("/")[2])
KEY = LAYOUT.tombstone(uuid(1))
BUCKET = "objects"
# The default owner of the buckets on a server of moto.
ACCOUNT = "123456789012"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def client(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_S3": endpoint,
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    made = boto3.client("s3")
    made.create_bucket(Bucket=BUCKET)
    yield made
    made.close()
    # What the server keeps, it keeps in this process.
    get_backend("s3")[ACCOUNT]["aws"].reset()


def store(client: Any, prefix: str = "pre/fix") -> S3Store:
    return S3Store(client, BUCKET, prefix, LAYOUT, max_object_bytes=1000)


def test_an_object_is_put_once_and_keeps_its_bytes(client: Any) -> None:
    made = store(client)

    assert made.get(KEY) is None
    assert made.put_atomic(KEY, b"one") is Put.NEW
    assert made.put_atomic(KEY, b"one") is Put.SAME
    assert made.put_atomic(KEY, b"two") is Put.OTHER
    assert made.get(KEY) == b"one"
    made.replace(KEY, b"three")
    assert made.get(KEY) == b"three"


def test_of_many_writers_of_one_key_one_writes(client: Any) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: store(client).put_atomic(KEY, b"%d" % number), range(8)))

    assert sorted(each.value for each in found) == ["new", *["other"] * 7]
    assert store(client).get(KEY) == b"%d" % found.index(Put.NEW)


def test_the_store_itself_refuses_what_was_not_there_when_it_was_looked_for(client: Any) -> None:
    class Late(S3Store):
        looked = 0

        def compare(self, key: str, data: bytes) -> Put | None:
            self.looked += 1
            if self.looked == 1:
                store(client).put_atomic(key, b"faster")
                return None
            return super().compare(key, data)

    made = Late(client, BUCKET, "pre/fix", LAYOUT, max_object_bytes=1000)

    assert made.put_atomic(KEY, b"slower") is Put.OTHER
    assert store(client).get(KEY) == b"faster"


def test_a_put_whose_answer_was_lost_is_known_again(client: Any) -> None:
    class Lost(S3Store):
        def write(self, key: str, data: bytes) -> None:
            super().write(key, data)
            super().write(key, data)

    made = Lost(client, BUCKET, "", LAYOUT, max_object_bytes=1000)

    assert made.put_atomic(KEY, b"x") is Put.SAME
    assert made.get(KEY) == b"x"


def test_every_page_is_listed_by_parts_of_the_path(client: Any) -> None:
    keys = sorted(LAYOUT.segment(uuid(1), uuid(number)) for number in range(1005))
    for key in keys:
        # Over HTTP a thousand take ten seconds; only their listing is tested.
        get_backend("s3")[ACCOUNT]["aws"].put_object(BUCKET, key, b"")
    client.put_object(Bucket=BUCKET, Key=f"{LAYOUT.partials}/objects/x.hxseg.partial", Body=b"")
    client.put_object(Bucket=BUCKET, Key=f"{LAYOUT.objects}/x.hxseg.partial", Body=b"")
    made = store(client, "")

    assert made.list("").keys == keys
    assert made.list("").strays == [f"{LAYOUT.objects}/x.hxseg.partial"]
    assert made.list(f"{LAYOUT.objects}/segments/{uuid(1)}/").keys == keys
    assert made.list(f"{LAYOUT.objects}/segments/{uuid(1)[:-1]}").keys == []
    assert made.list(LAYOUT.partials).keys == []


def test_a_bucket_that_is_not_there_is_an_error_and_not_empty(client: Any) -> None:
    made = S3Store(client, "none", "", LAYOUT, max_object_bytes=1000)

    for call in (made.check, lambda: made.list(""), lambda: made.get(KEY), lambda: made.put_atomic(KEY, b"")):
        with pytest.raises(StoreError):
            call()


def test_two_devices_converge_over_a_bucket(client: Any, tmp_path: Path) -> None:
    digests: list[str] = []
    for folder, name in (("one", "a"), ("two", "b"), ("one", "a")):
        root = tmp_path / folder
        parts = Parts(root, {}, where=f"s3://{BUCKET}/vaults")
        parts.store.make()
        (root / "nodes").mkdir(parents=True, exist_ok=True)
        devices = Devices(parts, Service(parts, now=NOW))
        devices.accepted("enroll", node=name, node_id=parts.settings.nodes[name])
        number = len(digests) + 1
        devices.publish(number, node=name, events=[event(number, node=name)])
        devices.accepted("publish_manifest", node=name)
        devices.accepted("import", node=name)
        digests.append(devices.digest(name))
        if number == 3:
            assert len(devices.state(name)["events"]) == 3
        devices.service.close()
    assert len(set(digests)) == 3


def test_the_command_line_takes_a_bucket(client: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where, home = f"s3://{BUCKET}/mine", str(tmp_path / "home")
    assert operate.main(["init", "--home", home, "--store", where, "--new-key-file", str(tmp_path / "key")]) == 0
    assert operate.main(["publish", "--blob", str(tmp_path / "key"), "--home", home]) == 0
    assert operate.main(["import", "--home", home]) == 0
    assert "imported 1, skipped 0" in capsys.readouterr().out
    words = ["init", "--home", str(tmp_path / "other"), "--new-key-file", str(tmp_path / "k"), "--store"]
    assert operate.main([*words, "s3://"]) == 2
    assert operate.main([*words, "s3://none/x"]) == 1
    assert "STORE_UNAVAILABLE" in capsys.readouterr().err
