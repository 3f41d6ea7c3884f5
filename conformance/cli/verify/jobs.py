"""How many processes run the cases, where `--jobs` does not say it.

Verdicts do not depend on the number: each process has workers, workdirs and a launcher of its own, and a case is run
by one of them alone.
"""

from __future__ import annotations

from holdfast.servers.processors import processors

# One more process costs a start and a launcher, which is worth it for this number of cases.
CASES_EACH = 40
MOST = 64


def default_jobs(cases: int) -> int:
    """One more than the machine has processors, because many cases wait; at most as many as `cases` are worth."""
    return max(1, min(processors() + 1, cases // CASES_EACH, MOST))
