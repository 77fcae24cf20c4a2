from __future__ import annotations

import os

from hypothesis import settings

# A busy machine is no failure, and a failure can be had again; `HYPOTHESIS_PROFILE=wide` looks further.
settings.register_profile("default", deadline=None, max_examples=60, derandomize=True)
settings.register_profile("wide", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
