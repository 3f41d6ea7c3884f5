"""holdfast: a conformance kit for systems that promise at most once and never lost.

In the repository the packages stand at the top level, and this folder links to them. Everything is imported as
`holdfast.<package>`, so that an installation owns one name in site-packages.

The public interface is what stands in `__all__`; docs/python.md describes it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.adapter import Adapter
    from holdfast.conformance.run.fixture import Holdfast
    from holdfast.conformance.verdict import Exit, Verdict
    from holdfast.interface import CrashResult, Finding, GateResult, VerifyResult, crash, gate, verify
    from holdfast.specs import SpecError, load_contract
    from holdfast.store import Refused, Store

# fmt: off
__all__ = [
    "Adapter", "CrashResult", "Exit", "Finding", "GateResult", "Holdfast", "Refused", "SpecError", "Store", "Verdict",
    "VerifyResult", "crash", "gate", "load_contract", "verify",
]
_PLACES = {
    "Adapter": "adapter", "Exit": "conformance.verdict", "Holdfast": "conformance.run.fixture", "Refused": "store",
    "SpecError": "specs", "Store": "store", "Verdict": "conformance.verdict", "load_contract": "specs",
}
# fmt: on


def __getattr__(name: str) -> object:
    """A public name, from its module when it is first asked for: `import holdfast` imports nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES.get(name, 'interface')}"), name)


# Read by the build as the distribution's version.
__version__ = "0.2.0"
# What pip knows it by: on PyPI, the name `holdfast` is that of another project.
DISTRIBUTION = "holdfast-conformance"


def requirement(extra: str = "") -> str:
    """What pip is given to install this holdfast once more, with an extra: the folder, the file or the revision that it
    was installed from (PEP 610), or else the release."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path

    name = f"{DISTRIBUTION}[{extra}]" if extra else DISTRIBUTION
    try:
        recorded = distribution(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:
        return f"{name} @ {Path(__file__).resolve().parents[1].as_uri()}"
    if recorded is None:
        return f"{name}=={__version__}"
    origin = json.loads(recorded)
    if revision := origin.get("vcs_info"):
        return f"{name} @ {revision['vcs']}+{origin['url']}@{revision['commit_id']}"
    return f"{name} @ {origin['url']}"


def install_line(extra: str = "") -> str:
    """The command that installs this holdfast with an extra: each message and each file that names one says this."""
    return f"pip install '{requirement(extra)}'"


# Modules whose distribution has another name.
_NAMED = {"nacl": "pynacl"}


def _packages(extra: str) -> set[str]:
    """The distributions that an extra brings, with those of the extras in it; none for a kit that is not installed."""
    from importlib.metadata import PackageNotFoundError, requires

    from packaging.requirements import Requirement

    try:
        lines = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return set()
    found: set[str] = set()
    for one in map(Requirement, lines):
        if one.marker is not None and one.marker.evaluate({"extra": extra}):
            found |= set().union(*map(_packages, one.extras)) if one.name == DISTRIBUTION else {one.name}
    return found


def lacking(extra: str) -> str:
    """Why the parts of the kit that need an extra cannot run; empty if all of its packages are installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    missing = []
    for name in sorted(_packages(extra)):
        try:
            distribution(name)
        except PackageNotFoundError:
            missing.append(name)
    return _not_installed(missing, extra) if missing else ""


def lacked(error: BaseException | None) -> str:
    """The same of the module that is missing in `error` or in its cause; empty for another error."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name:
            return _brought(error.name.partition(".")[0])
        error = error.__cause__
    return ""


def _brought(module: str) -> str:
    """What brings a module that is not installed: the smallest extra that has it; empty if no extra has it."""
    from importlib.metadata import PackageNotFoundError, metadata

    name = _NAMED.get(module, module.replace("_", "-"))
    try:
        extras = metadata(DISTRIBUTION).get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return ""
    having = [extra for extra in extras if name in _packages(extra)]
    return _not_installed([name], min(having, key=lambda extra: len(_packages(extra)))) if having else ""


def _not_installed(names: list[str], extra: str) -> str:
    return f"expected {', '.join(names)}, which is not installed: `{install_line(extra)}`"
