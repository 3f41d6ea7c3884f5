"""How suites generate what they do: fixed by the code, so that two runs have the same plan."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

# Nothing is shrunk: a history is short, and each trial costs a session.
DRAWN = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
