"""service.toml: what is wrong in it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.servers.wires.profile import ProfileError, read

_GOOD = """
[service]
start = "node server.js"
[service.env]
SINK_URL = "{sink}"
[route.create]
path = "/orders"
"""


def _read(folder: Path, text: str) -> str:
    file = folder / "service.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError) as found:
        read(file)
    return str(found.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[service", "TOML"),
        (_GOOD + "colour = 1\n", "colour"),
        (_GOOD.replace('start = "node server.js"', ""), "start"),
        (_GOOD.replace('start = "node', 'url = "http://x"\nstart = "node'), "url"),
        (_GOOD.replace("{sink}", "http://here"), "{sink}"),
        (_GOOD.replace("[route.create]\npath", "[profile]\nheader"), "route"),
        (_GOOD + "[credentials.c]\nAuthorization = 'x'\n", "credentials.c"),
        (_GOOD + "[profile]\nkey_syntax = 'text'\n", "key_syntax"),
        (_GOOD.replace("[route.create]", "[route.other]"), "create"),
        (_GOOD + "[profile]\nanswer_s = 60\n", "answer_s"),
        (_GOOD + "[profile]\nkey_pattern = '['\n", "key_pattern"),
        (_GOOD.replace("{sink}'", "") + "[service.more]\n", "more"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    assert said in _read(tmp_path, text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"service\.toml"):
        read(tmp_path / "service.toml")


def test_the_wires_follow_from_what_the_service_is_given(tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_text(_GOOD, encoding="utf-8")
    assert read(file).wires() == ["sink", "process"]
    given = 'STORE = "redis://{store}"\nCLOCK = "{clock}"\n[store]\nstart = "redis-server"\n[route.create]'
    file.write_text(_GOOD.replace("[route.create]", given), encoding="utf-8")
    assert read(file).wires() == ["sink", "process", "proxy", "server", "clock"]
    file.write_text(_GOOD.replace('start = "node server.js"', 'url = "http://127.0.0.1:1"'), encoding="utf-8")
    assert "process" not in read(file).wires()
