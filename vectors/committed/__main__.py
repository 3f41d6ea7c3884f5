"""`python -m vectors.committed`: write `vectors/data` again. `holdfast vectors lint` says whether that is needed."""

from __future__ import annotations

from pathlib import Path

from holdfast import vectors
from holdfast.vectors.committed.build import files


def main() -> None:
    """Write every file of the committed vectors beside this package."""
    data = Path(next(iter(vectors.__path__))) / "data"
    for name, content in files().items():
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        print(f"{path}: {content.count(bytes([10]))} records")


if __name__ == "__main__":
    main()
