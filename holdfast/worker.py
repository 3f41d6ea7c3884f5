"""A class of a user in a process of its own: `python -m holdfast.worker adapter|store MODULE:CLASS FOLDERS`.

Each process of a store starts here, so nothing is imported that it may not need.
"""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any


def is_worker() -> bool:
    """Whether this process runs the class of a user for a holdfast that another process runs."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name == __name__


def command_of(kind: type, role: str) -> list[str]:
    """The command that runs the class. Raises ValueError for a class that another process cannot import."""
    module = sys.modules.get(kind.__module__, ModuleType("none"))
    name, file = kind.__module__, os.path.abspath(module.__file__ or "") if hasattr(module, "__file__") else ""
    # Python calls its standard input `<stdin>`.
    if not os.path.isfile(file) or _found(module, kind.__qualname__) is not kind:
        raise ValueError(
            f"expected a class that another process can import, got {name}.{kind.__qualname__}, which no file has by "
            "that name; put it at the top level of a module, as `class Mine(...)` in mine.py, and import it"
        )
    if name == "__main__":
        name = module.__spec__.name if module.__spec__ else os.path.basename(file).partition(".")[0]
    folder = file
    for _ in range(name.count(".") + (2 if os.path.basename(file).startswith("__init__.") else 1)):
        folder = os.path.dirname(folder)
    folders = os.pathsep.join(dict.fromkeys([folder, *map(os.path.abspath, sys.path)]))
    # -B: a compiled module that the first start leaves, and a later one reads, would be a file of the store's.
    return [sys.executable, "-B", "-P", "-m", __name__, role, f"{name}:{kind.__qualname__}", folders]


def files_of(kind: type) -> list[str]:
    """The files that the class and its bases stand in, but for those of holdfast and of Python's own library."""
    names = dict.fromkeys(base.__module__ for base in kind.__mro__)
    others = {"holdfast", *sys.stdlib_module_names} - {"__main__"}
    own = [sys.modules[name].__file__ for name in names if name.partition(".")[0] not in others]
    return [os.path.abspath(file) for file in own if file is not None]


def _found(module: ModuleType, name: str) -> Any:
    """What a module has by that name; None if nothing."""
    place: Any = module
    for part in name.split("."):
        place = getattr(place, part, None)
    return place


def main() -> None:
    """Import the class and serve it until the input ends."""
    role, named, folders, *workdir = sys.argv[1:]
    sys.path[:] = folders.split(os.pathsep)
    module, _, name = named.partition(":")
    served = importlib.import_module(f"holdfast.{role}").serve
    served(_found(importlib.import_module(module), name), *workdir)


if __name__ == "__main__":
    main()
