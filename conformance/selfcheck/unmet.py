"""The cases that a planted bug cannot change: they execute no line of what it replaces, so `--full` leaves them out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from holdfast.conformance.selfcheck.tasks import Sites, Traced

Unmet = Mapping[str, frozenset[str]]


def unmet_cases(sites: Sites, traced: Sequence[Traced], stores: Mapping[str, str]) -> Unmet:
    """For each bug of `stores`, which says with which store it runs, the traced cases that it cannot change.

    A bug that replaces what is not traced, or what the launcher runs, may change every case. So may one of which it is
    not known what it replaces. A case that did not conform as it was traced is left out for none.
    """
    launched = {line for each in traced if not each.test.case for line in _lines(each.lines)}
    cases = [(each, frozenset(_lines(each.lines))) for each in traced if each.test.case and each.conforms]
    found: dict[str, frozenset[str]] = {}
    for bug, store in stores.items():
        replaced = sites.bugs.get(bug)
        if replaced is None or not sites.files.keys() >= replaced.keys():
            continue
        lines = set(_lines(replaced))
        if lines.isdisjoint(launched):
            found[bug] = frozenset(
                each.test.case for each, executed in cases if each.test.store == store and lines.isdisjoint(executed)
            )
    return found


def _lines(by_file: Mapping[str, Collection[int]]) -> set[tuple[str, int]]:
    return {(file, line) for file, numbers in by_file.items() for line in numbers}
