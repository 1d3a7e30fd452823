"""What holds for all tests: Hypothesis asks for right answers, however long a busy machine takes to find them."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
