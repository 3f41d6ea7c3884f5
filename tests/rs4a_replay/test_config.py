"""What a session of the registrar is opened with: a setting that makes no sense opens nothing and is said."""

from __future__ import annotations

import pytest

from holdfast.reference_impl.rs4a_replay.entry import Rs4aReplay
from holdfast.reference_impl.session import OpenError, OpenRequest, StateWanted, SurfaceWanted
from tests.rs4a_replay.conftest import NOW


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"store": "oracle"}, "expected one of postgres, sqlite"),
        ({"isolation": "chaos"}, "expected one of read_committed"),
        ({"ttl_seconds": "soon"}, "expected a whole number"),
        ({"ttl": "1"}, "no such key"),
        ({"store": "postgres", "dsn": "", "writer_dsn": ""}, "expected a DSN"),
        ({"store": "postgres", "dsn": "pass word=hunter2", "writer_dsn": "x"}, "not a DSN"),
        ({"store": "sqlite", "template": "/nowhere"}, "expected the folder of a provisioned template"),
    ],
)
def test_a_bad_config_says_what_was_expected_and_keeps_secrets(
    config: dict[str, str], said: str, tmp_path: object
) -> None:
    request = OpenRequest(StateWanted.FRESH, SurfaceWanted.READY, tmp_path, NOW, config)  # type: ignore[arg-type]
    with pytest.raises(OpenError, match=said) as caught:
        Rs4aReplay().open(request)
    assert "hunter2" not in str(caught.value)
