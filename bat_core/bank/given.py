"""Tasks that are given in a file."""

from __future__ import annotations

from pathlib import Path

from bat_core.errors import SynthesisError
from bat_core.model.task import Task


def read_tasks(path: Path) -> list[Task]:
    """Read tasks from a JSONL file, one a line.

    Raises:
        SynthesisError: For a line that is not a task, naming file and line.
    """
    tasks = []
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SynthesisError(f"can't read {path}: {error}", remedy="check --tasks") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            tasks.append(Task.model_validate_json(line))
        except ValueError as error:
            first = str(error).splitlines()[-2].strip() if "\n" in str(error) else str(error)
            raise SynthesisError(
                f"{path}:{number} is not a task: {first}", remedy="see `bat bank build --help`"
            ) from error
    return tasks
