"""A fictional task: a public part for the sandbox, a private part for graders only."""

from __future__ import annotations

from enum import StrEnum

from bat_core.model.base import JsonObject, Value


class Stratum(StrEnum):
    """What the state of affairs is when the policy takes over (method: outcome strata)."""

    SUCCESS = "success"
    RECOVERY = "recovery"
    FAILURE = "failure"


class Task(Value):
    """One task of a domain.

    Attributes:
        id: Unique within a bank or suite.
        domain: Name of the domain that made it.
        track: One of the domain's tracks.
        seed: Everything that the task contains follows from `(domain, version, seed, params)`.
        version: Version of the generator.
        stratum: What is wrong with it, if anything.
        faults: Names of the planted faults, in order of stage.
        public: What the sandbox may be given. Never holds an answer.
        private: Truth, for graders only; never enters a sandbox or a prompt.
    """

    id: str
    domain: str
    track: str
    seed: int
    version: str = "1"
    stratum: Stratum = Stratum.SUCCESS
    faults: tuple[str, ...] = ()
    public: JsonObject = {}
    private: JsonObject = {}
