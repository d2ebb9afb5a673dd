"""Hypothesis profiles: thorough and random at the desk, the same examples each time under CI. Triton without a GPU."""

import os
from pathlib import Path

# Without a GPU, Triton's interpreter runs the kernels; it must be told before they are defined.
os.environ.setdefault("TRITON_INTERPRET", "0" if Path("/dev/nvidiactl").exists() else "1")

from hypothesis import HealthCheck, settings

settings.register_profile("desk", deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("desk"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")
