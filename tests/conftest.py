"""What holds for all tests of the kit."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Tests start processes and wait for them; how long an example takes says nothing about it.
settings.register_profile("kit", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("kit")
