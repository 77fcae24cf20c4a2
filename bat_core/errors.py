"""Everything that can go wrong, in one tree.

BatError
├── ConfigError        a setting is unknown, missing or impossible
├── PluginError        a plugin can't be found, imported or trusted
├── ContractError      a domain's stages, rubrics or tasks contradict themselves
├── SynthesisError     the Stage Bank could not be filled
├── LeakageError       the preflight could not be carried out (and therefore rejects)
├── SandboxError       no sandbox, or one that misbehaves: ours to mend, never a reward
│   ├── SandboxUnavailable   the backend does not work on this machine
│   ├── CapabilityError      a required guarantee is missing
│   ├── SnapshotMismatch     restored content is not what was sealed
│   └── OutputLimit          more than may be read or sealed: the policy's doing
├── VerifierError      a verifier broke; the verdict is null
├── TrainerError       the trainer can't honour the settings or failed
├── EvaluatorError     the evaluator process failed
├── CheckpointError    weights or a tokenizer are missing or damaged
└── RunError           a run directory is in use, damaged, or belongs to another configuration

Each message says what failed, where, and what to do next, in one line. The command line
prints that line and exits with 2; a traceback appears only with `--debug`.
"""

from __future__ import annotations


class BatError(Exception):
    """Base of all expected failures.

    Args:
        message: What failed and where.
        remedy: What to do next; appended to the message.
    """

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message if remedy is None else f"{message}; {remedy}")
        self.remedy = remedy


class ConfigError(BatError):
    """A setting is unknown, missing or impossible."""


class PluginError(BatError):
    """A plugin can't be found, imported or trusted."""


class ContractError(BatError):
    """A domain's stages, rubrics or tasks contradict themselves."""


class SynthesisError(BatError):
    """The Stage Bank could not be filled."""


class LeakageError(BatError):
    """The preflight could not be carried out; it fails closed."""


class SandboxError(BatError):
    """A sandbox that we failed to provide: never the policy's fault, never a reward."""


class SandboxUnavailable(SandboxError):
    """The backend does not work on this machine, or died."""


class CapabilityError(SandboxError):
    """A guarantee that the specification requires can't be given."""


class SnapshotMismatch(SandboxError):
    """Restored content differs from what was sealed."""


class OutputLimit(SandboxError):
    """A file is larger than the read limit, or a workspace holds more than may be sealed: the policy's doing."""


class VerifierError(BatError):
    """A verifier broke; its verdict is null."""


class TrainerError(BatError):
    """The trainer can't honour its settings, or failed."""


class EvaluatorError(BatError):
    """The evaluator process failed."""


class CheckpointError(BatError):
    """Weights or a tokenizer are missing or damaged."""


class RunError(BatError):
    """A run directory is in use, damaged, or belongs to another configuration."""
