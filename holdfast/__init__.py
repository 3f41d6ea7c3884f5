"""holdfast: a conformance kit for systems that promise at most once and never lost.

In the repository the packages stand at the top level, and this folder links to them. Everything is imported as
`holdfast.<package>`, so that an installation owns one name in site-packages.
"""

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
