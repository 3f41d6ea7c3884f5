"""`holdfast vectors export`: documents as JSON lines, which a program of a few lines in another language can use."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from holdfast.vectors.jcs import export as module
from holdfast.vectors.jcs.construct import row
from holdfast.vectors.jcs.export import export
from holdfast.vectors.jcs.ladder import rung, steps
from holdfast.vectors.record import load
from holdfast.vectors.taxonomy import Profile
from tests.pace import busy
from tests.packaging.test_tree import ROOT

SEED, COUNT = 7, 300
FILES = {"committed.jsonl", "ladder.jsonl", "generated.jsonl"}
# What a browser's JSON takes and sorts; it takes duplicate names and half surrogate pairs.
NAIVE = """
const ordered = (value) => value === null || typeof value !== "object" ? JSON.stringify(value)
  : Array.isArray(value) ? `[${value.map(ordered)}]`
  : `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${ordered(value[name])}`)}}`;
export const canonicalise = (bytes) =>
  ordered(JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)));
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("export") / "vectors"
    assert export(made, count=COUNT, seed=SEED) == {
        "committed.jsonl": len(load()), "ladder.jsonl": len(steps()), "generated.jsonl": COUNT,
    }  # fmt: skip
    return made


def lines(folder: Path, name: str) -> Iterator[Any]:
    with (folder / name).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def test_every_line_fits_the_schema_and_has_an_id_of_its_own(folder: Path) -> None:
    schema = jsonschema_rs.validator_for(json.loads((folder / "schema.json").read_text(encoding="utf-8")))
    seen = [each["id"] for name in FILES for each in lines(folder, name) if schema.is_valid(each)]
    assert len(seen) == len({*seen}) == len(load()) + len(steps()) + COUNT


def test_digests_cover_every_file_and_the_manifest_counts_the_lines(folder: Path) -> None:
    listed = (folder / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in listed)}
    assert sums.keys() | {"SHA256SUMS"} == {path.name for path in folder.iterdir()}
    assert all(hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest for name, digest in sums.items())
    said = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert said["files"] == {name: sum(1 for _ in lines(folder, name)) for name in FILES}
    assert (said["seed"], said["licence"]) == (SEED, "Apache-2.0")


def test_a_line_says_what_the_row_of_its_id_expects(folder: Path) -> None:
    generated = [row(SEED, int(each["id"].partition(":")[2])) for each in lines(folder, "generated.jsonl")]
    climbed = [each for each in lines(folder, "ladder.jsonl") if len(each["document"]) < 2000]
    made = [*generated, *(rung(SEED, each["id"].split(":", 2)[2]) for each in climbed)]
    for each, due in zip([*lines(folder, "generated.jsonl"), *climbed], made, strict=True):
        assert bytes.fromhex(each["document"]) == due.document
        for profile in Profile:
            refused = {"refused": due.reason} if due.refused_by & profile.bit else None
            assert each["expected"][profile.value] == (refused or {"canonical": (due.canonical or b"").hex()})
    for each, vector in zip(lines(folder, "committed.jsonl"), load(), strict=True):
        assert (each["id"], bytes.fromhex(each["document"])) == (vector.id, vector.document)


def test_the_few_lines_of_node_in_the_docs_find_what_a_naive_canonicaliser_does_wrong(
    folder: Path, tmp_path: Path
) -> None:
    page = (ROOT / "docs" / "vectors.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```js\n(// check\.mjs.*?)```", page, re.DOTALL)
    (tmp_path / "check.mjs").write_text(program, encoding="utf-8")
    (tmp_path / "mine.mjs").write_text(NAIVE, encoding="utf-8")
    small = tmp_path / "small"
    small.mkdir()
    for name in FILES:
        shutil.copy(folder / name, small / name) if name != "ladder.jsonl" else (small / name).touch()
    done = subprocess.run(
        ["node", "check.mjs", str(small)], cwd=tmp_path, capture_output=True, text=True, timeout=busy(60), check=False
    )
    *wrong, last = done.stdout.splitlines()
    assert (done.returncode, last) == (1, f"{len(wrong)} of {len(load()) + COUNT} differ"), done.stderr
    categories = {each["category"] for name in FILES for each in lines(folder, name) if each["id"] in wrong}
    assert {"N1", "N2"} <= categories <= {"N1", "N2", "N4"}


# Programs that print the SHA-256 of all documents of a file, with what the language itself brings.
READERS = {
    "go": (["go", "run", "read.go"], "read.go", """package main
import ("bufio"; "crypto/sha256"; "encoding/hex"; "encoding/json"; "fmt"; "os")
func main() {
  file, _ := os.Open(os.Args[1]); lines, sum := bufio.NewReader(file), sha256.New()
  for { line, err := lines.ReadBytes('\\n'); if err != nil { break }
    var row struct { Document string }
    if err := json.Unmarshal(line, &row); err != nil { panic(err) }
    data, _ := hex.DecodeString(row.Document); sum.Write(data) }
  fmt.Printf("%x", sum.Sum(nil)) }"""),
    "java": (["java", "Read.java"], "Read.java", """import java.nio.file.*; import java.util.HexFormat;
class Read { public static void main(String[] words) throws Exception {
  var sum = java.security.MessageDigest.getInstance("SHA-256");
  for (String line : Files.readAllLines(Path.of(words[0])))
    sum.update(HexFormat.of().parseHex(line.split("\\"document\\":\\"")[1].split("\\"")[0]));
  System.out.print(HexFormat.of().formatHex(sum.digest())); } }"""),
    "perl": (["perl", "read.pl"], "read.pl", """use JSON::PP; use Digest::SHA; my $sum = Digest::SHA->new(256);
open(my $file, "<", $ARGV[0]);
$sum->add(pack("H*", decode_json($_)->{document})) while <$file>; print $sum->hexdigest;"""),
}  # fmt: skip


@pytest.mark.parametrize("language", READERS)
def test_a_program_of_each_language_reads_the_same_documents(folder: Path, tmp_path: Path, language: str) -> None:
    command, name, program = READERS[language]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    (tmp_path / name).write_text(program, encoding="utf-8")
    for each in ("committed.jsonl", "generated.jsonl"):
        due = hashlib.sha256(b"".join(bytes.fromhex(row["document"]) for row in lines(folder, each))).hexdigest()
        words = [*command, str(folder / each)]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=busy(120), check=False)
        assert done.stdout == due, done.stderr


def test_an_export_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with pytest.raises(FileExistsError):
        export(tmp_path, count=1, seed=0)
    with pytest.raises(ValueError, match="expected 0 to"):
        export(tmp_path / "new", count=module.MOST + 1, seed=0)
    monkeypatch.setattr(module, "_lines", full)
    with pytest.raises(OSError, match="No space"):
        export(tmp_path / "new", count=1, seed=0)
    assert [*tmp_path.iterdir()] == []
