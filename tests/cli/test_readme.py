"""The adapter of the README is run as it is printed, around a published library."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.reports.evidence import read_evidence

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.compile(r"^```python\n(# (\S+)\n.*?)^```", re.MULTILINE | re.DOTALL)


def holdfast(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of the README."""
    command = [sys.executable, "-P", "-m", "holdfast", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def printed(tmp_path: Path) -> Path:
    """A folder with the programs of the README."""
    found = {name: text for text, name in BLOCKS.findall(README.read_text(encoding="utf-8"))}
    assert found.keys() == {"adapter.py", "mine.py"}
    for name, text in found.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_adapter_of_the_readme_passes_the_gate_for_what_it_claims(printed: Path) -> None:
    adapter = ("--", sys.executable, "adapter.py")
    doctor = holdfast(printed, "doctor", "--contract", "jcs", *adapter)
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    verify = holdfast(printed, "verify", "--contract", "jcs", *adapter)
    assert verify.returncode == 0, verify.stdout + verify.stderr
    gate = holdfast(printed, "gate", "holdfast-out/run.jsonl.zst", "--require", "jcs/core")
    assert gate.returncode == 0, gate.stdout + gate.stderr
    assert "CAN_PROCEED = YES" in gate.stdout


READ = 'found = canonical(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))'
NUMBERS = {"jcs/num-03/the-fewest-digits", "jcs/suite/numbers-of-any-document-have-their-canonical-bytes"}
FORM = {"jcs/lit-01/literals-and-empty-containers", "jcs/suite/the-form-of-any-document-is-that-of-its-construction"}
LOCALE = {"jcs/suite/answers-do-not-depend-on-locale-and-zone"}
LONG = {"jcs/suite/strings-and-names-of-growing-length"}
ANY = "jcs/suite/strings-of-any-document-have-their-canonical-bytes"
MARK = {"jcs/bom-01/the-character-in-a-string", ANY, *LONG}
# Cases that judged these bytes as if something had been let in, and that are about other clauses.
OTHERS = {
    "jcs/gram-01/two-values",
    "jcs/dup-01/two-values",
    "jcs/ord-05/inner-objects",
    "jcs/pure-01/names-of-an-earlier-document",
    "jcs/suite/any-document-keeps-its-texts-members-and-elements",
    "jcs/suite/any-document-in-any-disguise-has-one-canonical-form",
    "jcs/suite/duplicate-names-at-every-size",
    "jcs/suite/names-of-growing-length-have-their-order",
    "jcs/suite/two-code-units-at-the-ends-of-their-ranges",
    "jcs/suite/committed-vectors-of-bytes",
    "jcs/utf8-03/the-form-is-plain-utf-8",
}
# What a canonicaliser does otherwise: the text before and after, and the cases that find it.
CHANGES = {
    "fifteen digits": ("    return float(text)", '    return float(f"{float(text):.15g}")', NUMBERS),
    "an empty list for an empty object": ("    return dict(pairs)", "    return dict(pairs) or []", FORM),
    "names of at most 1024 units": (
        "    return dict(pairs)",
        "    return {name if len(name) < 1025 else name[:1023] + name[-1]: value for name, value in pairs}",
        LONG | {ANY},
    ),
    "an escape in long names": (
        READ,
        f"{READ}\n        long = len(found) > 4000\n"
        "        found = found.replace(b'\\xe2\\x82\\xac\":', b'\\\\u20ac\":') if long else found",
        LONG | {ANY},
    ),
    "no mark in a string": (READ, f"{READ}\n        found = found.replace(b'\\xef\\xbb\\xbf', b'')", MARK),
    "a decimal comma": (
        READ,
        f"{READ}\n"
        "        names = __import__('os').environ\n"
        # As ICU reads it: the first variable that is there counts, though it is empty.
        "        locale = next((names[one] for one in ('LC_ALL', 'LC_MESSAGES', 'LANG') if one in names), '')\n"
        "        comma = locale.startswith('de_DE')\n"
        "        found = found.replace(b'.', b',') if comma else found",
        LOCALE,
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_wrong_bytes_are_wrong_under_the_clause_of_the_bytes_and_under_no_other(change: str, printed: Path) -> None:
    mine = (printed / "mine.py").read_text(encoding="utf-8")
    before, after, found = CHANGES[change]
    assert mine.count(before) == 1
    (printed / "mine.py").write_text(mine.replace(before, after), encoding="utf-8")
    cases = [word for case in sorted(NUMBERS | FORM | LOCALE | LONG | MARK | OTHERS) for word in ("--case", case)]
    holdfast(printed, "verify", "--contract", "jcs", "--seed", "readme", *cases, "--", sys.executable, "adapter.py")
    run = read_evidence(printed / "holdfast-out" / "run.jsonl.zst")
    verdicts = {line.case: line.verdict for line in run.verdicts}
    assert verdicts == {**dict.fromkeys(verdicts, "conforms"), **dict.fromkeys(found, "wrong_reason")}
    assert len(verdicts) == len(cases) // 2
