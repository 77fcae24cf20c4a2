"""Single-step SFT slices of admitted expert runs."""

from __future__ import annotations

from collections.abc import Iterator

from bat_core.bank.states import Cut
from bat_core.model.training import Slice
from bat_core.rollout.lab import Lab


def slices(lab: Lab, cut: Cut) -> Iterator[Slice]:
    """Yield one slice for each assistant turn of the expert's run from a state."""
    source = cut.state.digest
    said = list(lab.harness.prompt(lab.contract, cut.state))
    for n, message in enumerate(cut.expert.messages):
        if message.role == "assistant":
            yield Slice(
                id=f"{cut.state.id}:{n}",
                trajectory=cut.state.task.id,
                stage=cut.state.focus,
                messages=tuple(said),
                target=message,
                source=source,
            )
        said.append(message)
