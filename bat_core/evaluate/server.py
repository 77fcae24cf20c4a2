"""The evaluator process: it alone holds held-out content. `python -m bat_core.evaluate.server`.

Frames on stdin and stdout. The first names domain, suite and settings; each further one names policies. Answers
are progress counts and one `Diagnosis`: what may cross is decided by that type. What libraries print goes to a log
in the evaluator's own folder.
"""

from __future__ import annotations

import sys
from typing import Any, BinaryIO

from bat_core.errors import BatError
from bat_core.hooks.domain import Suite
from bat_core.model.diagnosis import Diagnosis
from bat_core.model.leakage import HeldoutItem
from bat_core.model.training import PolicyRef
from bat_core.processes import frames
from bat_core.processes.serving import served
from bat_core.registry import load_domain


def heldout_items(domain: str, settings: dict[str, Any]) -> list[HeldoutItem]:
    """Return the held-out items of a domain's suite. The source that the leakage checker calls in its own process."""
    loaded = load_domain(domain)
    suites: tuple[Suite, ...] = ("heldout", "blind")
    return [item for suite in suites for item in loaded.evaluator(suite, settings[suite]).heldout()]


def serve(source: BinaryIO, sink: BinaryIO) -> int:
    """Answer frames until `source` ends."""
    opening = frames.read(source)
    try:
        evaluator = load_domain(opening["domain"]).evaluator(opening["suite"], opening["settings"])
        frames.write(sink, {"ready": True})
        while True:
            request = frames.read(source)
            against = PolicyRef.model_validate(request["against"]) if request["against"] else None
            diagnosis: Diagnosis = evaluator.evaluate(
                PolicyRef.model_validate(request["policy"]),
                against,
                lambda done, total: frames.write(sink, {"progress": [done, total]}),
            )
            frames.write(sink, {"diagnosis": diagnosis.model_dump(mode="json")})
    except EOFError:
        return 0
    except BatError as error:
        frames.write(sink, {"error": type(error).__name__})
        print(error, file=sys.stderr)
        return 2


def main() -> int:
    """Serve on stdin and stdout; stray prints go to stderr, which is the evaluator's log."""
    try:
        return served(serve)
    finally:
        from bat_core.rollout.lab import close_labs

        close_labs()


if __name__ == "__main__":
    sys.exit(main())
