"""Receipts: what the harness, never the agent, records of each call."""

from __future__ import annotations

from typing import Literal

from bat_core.model.base import Value


class Receipt(Value):
    """One tool call as the harness saw it, chained to the one before and keyed with the run's HMAC.

    Attributes:
        seq: Position in the rollout, from 0.
        provider: Sandbox backend; `unsafe-process` marks a receipt from an unguarded process.
        language, code: What was run.
        stdout, stderr: Tails as shown to the policy (before the observation limit is applied).
        ws_before, ws_after: Tree hashes of the workspace.
        prev: `mac` of the previous receipt, empty for the first.
        mac: HMAC-SHA256 over all other fields.
    """

    seq: int
    provider: str
    language: str
    code: str
    status: Literal["exited", "timeout", "oom", "killed"]
    rc: int | None
    stdout: str
    stderr: str
    out_sha: str
    err_sha: str
    ws_before: str
    ws_after: str
    prev: str = ""
    mac: str = ""
