"""Checks the outcome of a run: enough was learnt, nothing was lost, every figure is there."""

import argparse
import json
import sys
from pathlib import Path


def main() -> int:
    """Print what was found; return 1 if something is missing or too low."""
    parser = argparse.ArgumentParser()
    parser.add_argument("summary", type=Path)
    parser.add_argument("--gain", type=float, required=True, help="points of held-out overall")
    parser.add_argument("--blind", type=float, default=None, help="points of blind overall")
    arguments = parser.parse_args()
    summary = json.loads(arguments.summary.read_text())
    wrong = []
    for suite, least in (("heldout", arguments.gain), ("blind", arguments.blind)):
        before, after = summary[suite]["coldstart"], summary[suite]["best"]
        gain = after["overall"] - before["overall"]
        print(f"{suite}: {before['overall']:.1f} -> {after['overall']:.1f} ({gain:+.1f}), n={after['n']}")
        if least is not None and gain < least:
            wrong.append(f"{suite} gained {gain:.1f}, at least {least} expected")
        if before["invalid"] or after["invalid"]:
            wrong.append(f"{suite} has invalid cells")
    if not 15 <= summary["heldout"]["coldstart"]["overall"] <= 60:
        wrong.append("theta_0 is not between 15 and 60 of held-out overall")
    for key in ("tasks", "states", "slices", "rejected", "rollouts", "policy_tokens"):
        if summary["counts"].get(key) is None:
            wrong.append(f"counts lacks {key}")
    print(
        f"rounds: {[(r['mixture']['target'], r['decision']) for r in summary['rounds']]}; seconds: {summary['seconds']}"
    )
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
