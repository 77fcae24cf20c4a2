from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bat_core.config.load import (
    Layer,
    Resolved,
    file_layer,
    known_keys,
    override_layer,
    preset_layer,
    presets,
    resolve,
)
from bat_core.config.show import as_yaml
from bat_core.errors import ConfigError


def one(**values: Any) -> Resolved:
    return resolve([Layer("FILE", values)])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"train": {"stps": 4}}, "unknown key 'train.stps' in FILE; did you mean 'train.steps'?"),
        ({"trian": {"steps": 4}}, "unknown key 'trian.steps' in FILE; did you mean 'train.steps'?"),
        ({"gates": {}}, "unknown key 'gates' in FILE; did you mean "),
        ({"seed": {"value": 1}}, "unknown key 'seed.value' in FILE; "),
        (
            {"train": {"steps": 0}},
            "train.steps=0 in FILE: input should be greater than or equal to 1; see `bat config schema`",
        ),
        ({"train": {"lr": "fast"}}, "train.lr='fast' in FILE: input should be a valid number"),
        ({"train": {"lr": float("inf")}}, "train.lr=inf in FILE: input should be a finite number"),
        ({"train": {"lr": float("nan")}}, "train.lr=nan in FILE: "),
        ({"train": {"loss": "ppo"}}, "train.loss='ppo' in FILE: input should be 'grpo', 'dapo', 'dr_grpo' or 'bnpo'"),
        ({"train": 3}, "train=3 in FILE: input should be a valid dictionary"),
        ({"mixture": {"mix": 0.5}}, "mixture.target + mixture.mix + mixture.e2e must be 1; for example .5 .25 .25"),
        (
            {"train": {"groups": 6}},
            "mixture.mix=0.25 of train.groups=6 is not a whole number of groups; choose train.groups so that",
        ),
    ],
)
def test_what_can_not_be_is_said_with_its_place(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        one(**values)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_the_later_layer_is_stronger_and_each_value_knows_its_origin() -> None:
    found = resolve(
        [
            preset_layer("cpu"),
            Layer("domain d", {"rollout": {"turns": 7, "stage_turns": 3}}),
            Layer("mine.yaml", {"rollout": {"turns": 9}}),
            override_layer(["train.steps=2", "policy.base=/some/folder"]),
        ]
    )
    assert found.config.rollout.turns == 9 and found.config.rollout.stage_turns == 3
    assert found.config.train.steps == 2 and found.config.policy.base == "/some/folder"
    origins = found.origins
    assert origins["rollout.turns"] == "mine.yaml" and origins["rollout.stage_turns"] == "domain d"
    assert origins["train.steps"] == "command line" and origins["train.groups"] == "preset cpu"
    assert origins["gate.patience"] == "default"
    assert set(origins) == set(known_keys())


@pytest.mark.parametrize("name", presets())
def test_every_preset_is_valid_and_says_its_name(name: str) -> None:
    config = resolve([preset_layer(name)]).config
    assert config.preset == name
    assert config.train.groups * config.mixture.target == int(config.train.groups * config.mixture.target)


def test_the_gpu_preset_holds_the_reference_settings() -> None:
    config = resolve([preset_layer("gpu")]).config
    train, rollout, cold, gate = config.train, config.rollout, config.coldstart, config.gate
    assert (train.groups, train.rollouts, train.steps, train.lr, train.beta) == (8, 4, 50, 2.5e-7, 0.006)
    assert (train.loss, train.scale, config.loop.rounds) == ("grpo", "none", 10)
    assert (rollout.turns, rollout.response_tokens, rollout.observation_chars, rollout.temperature) == (
        24,
        16384,
        2048,
        0.7,
    )
    assert (cold.steps, cold.batch, cold.lr, cold.max_tokens, cold.validation) == (200, 32, 2e-5, 8192, 0.05)
    assert (gate.overall, gate.task, gate.track, gate.catastrophic, gate.patience) == (0.01, 0.03, 0.05, 0.20, 2)
    assert (config.mixture.target, config.mixture.mix, config.mixture.e2e) == (0.50, 0.25, 0.25)


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        preset_layer("cpus")
    assert str(caught.value) == "unknown preset 'cpus'; did you mean 'cpu'?"


def test_a_file_is_named_in_its_errors(tmp_path: Path) -> None:
    missing = tmp_path / "none.yaml"
    with pytest.raises(ConfigError, match=rf"can't read the configuration {missing}: .*; check --config"):
        file_layer(missing)
    broken = tmp_path / "broken.yaml"
    for text in ("train: {steps: [", "\tseed: 1", "seed: ${nothing}"):
        broken.write_text(text)
        with pytest.raises(ConfigError, match=rf"{broken} is not valid YAML: .*; mend the file") as caught:
            file_layer(broken)
        assert "\n" not in str(caught.value)
    broken.write_text("- a\n- b\n")
    with pytest.raises(ConfigError, match="must hold keys and values"):
        file_layer(broken)
    broken.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="can't read the configuration"):
        file_layer(broken)
    broken.write_text("")
    assert file_layer(broken).values == {}


@pytest.mark.parametrize("pair", ["train.steps", "", "steps:4"])
def test_an_override_without_an_equals_sign_is_refused(pair: str) -> None:
    with pytest.raises(ConfigError) as caught:
        override_layer([pair])
    assert str(caught.value) == f"{pair!r} is not of the form key=value; for example train.steps=4"


def test_an_override_may_hold_an_equals_sign() -> None:
    assert override_layer(["policy.base=a=b"]).values == {"policy": {"base": "a=b"}}


@pytest.mark.parametrize("word", ["yes", "domain", "a/b: c #d", "1e5", "null", "Org/Model-3.5", "it's", "~", ""])
def test_what_is_printed_can_be_read_again_and_says_where_from(tmp_path: Path, word: str) -> None:
    found = resolve([preset_layer("cpu"), Layer("mine", {"policy": {"base": word}, "train": {"lr": 1e-7}})])
    text = as_yaml(found)
    assert "  lr: 1.0e-07  # mine\n" in text and "  patience: 2  # default\n" in text
    path = tmp_path / "config.yaml"
    path.write_text(text)
    assert resolve([file_layer(path)]).config == found.config
