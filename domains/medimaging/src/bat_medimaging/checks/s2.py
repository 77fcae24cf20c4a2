"""S2: weights, header, environment and configuration."""

from __future__ import annotations

from dataclasses import replace

from bat_core.verify.toolbox.facts import Fact, echoed, forged
from bat_core.verify.toolbox.readback import read_back
from bat_medimaging.casefile import Casefile
from bat_medimaging.checks.base import Finding, claim
from bat_medimaging.toolbelt.phx import nifti
from bat_medimaging.toolbelt.phx.place import json_of
from bat_medimaging.toolbelt.phx.setup import CONFIG, ENVIRONMENT, header_facts, input_path
from bat_medimaging.toolbelt.phx.weights import expected_sha, probe_of, sha_of


def hash_shown(case: Casefile) -> Finding:
    """A call printed hash and size of the weights that are used."""
    blob = _weights(case)
    facts: list[Fact] = [sha_of(blob)[:6], len(blob)]
    found = read_back(case.calls, (), 0, facts)
    return replace(found, passed=bool(found.passed and _set_up(case) and blob))


def header_read(case: Casefile) -> Finding:
    """A call printed what the header of a case says."""
    fake = False
    for name in case.recipe.readable:
        facts = _header(case, name)
        if _set_up(case) and echoed(case.calls, facts, 3):
            return Finding(True, name)
        fake = fake or forged(case.calls, facts, 3)
    return Finding(False, "no header shown", fake, 0.0 if fake else 1.0)


def weights_usable(case: Casefile) -> Finding:
    """The recorded weights are the right model's, undamaged, and gave the recorded number."""
    record = json_of(case.files, ENVIRONMENT)
    model, blob = case.recipe.model, case.given.get(f"models/{record.get('model')}/{record.get('weights')}", b"")
    sha = sha_of(blob)
    fine = record.get("model") == model and sha == expected_sha(case.files, model) == record.get("sha256")
    fine = fine and _probe_right(blob, record.get("probe"))
    new = case.new(ENVIRONMENT)
    return claim(new and fine, "recorded weights, hash or probe are wrong" if not fine else "", new)


def config_complete(case: Casefile) -> Finding:
    """The configuration names the planned model, and its settings and nothing else."""
    wanted = {"model", "weights", *case.knobs}
    extra, missing = sorted(set(case.config) - wanted), sorted(wanted - set(case.config))
    model = case.config.get("model")
    fine = not extra and not missing and isinstance(model, str) and model == case.planned("model")
    return Finding(case.new(CONFIG) and fine, f"missing {missing}, extra {extra}"[:120])


def mirror_used(case: Casefile) -> Finding:
    """Damaged weights gave way to the mirror whose hash is right."""
    used = case.config.get("weights")
    return Finding(case.new(CONFIG) and used == case.recipe.good_weights, f"uses {str(used)[:40]}")


def sound_kept(case: Casefile) -> Finding:
    """Sound weights were not replaced."""
    used = case.config.get("weights")
    return Finding(case.new(CONFIG) and used == "weights.npz", f"uses {str(used)[:40]}")


def _set_up(case: Casefile) -> bool:
    """Whether this rollout set something up: looking alone is no setup, nor is somebody else's look."""
    return case.new(CONFIG) or case.new(ENVIRONMENT)


def _weights(case: Casefile) -> bytes:
    return case.given.get(f"models/{case.config.get('model')}/{case.config.get('weights')}", b"")


def _header(case: Casefile, name: str) -> list[Fact]:
    shown = header_facts(case.given[input_path(case.recipe.track, name)], case.recipe.track)
    facts: list[Fact] = []
    for fact in shown:
        if isinstance(fact, int):
            facts.append(fact)
        elif isinstance(fact, str) and fact not in ("i2",):
            facts.append(fact if fact.isalpha() else float(fact))
    return list(dict.fromkeys(facts))


def _probe_right(blob: bytes, told: object) -> bool:
    try:
        probe = probe_of(blob)
    except nifti.Unreadable:
        return False
    return isinstance(told, (int, float)) and not isinstance(told, bool) and abs(told - probe) <= 0.02
