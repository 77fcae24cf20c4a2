"""Merging preset, domain defaults, file and overrides, and saying where each value comes from."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from bat_core.config.schema import Config
from bat_core.errors import ConfigError


@dataclass(frozen=True)
class Layer:
    """A mapping and the name of the place it comes from."""

    source: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Resolved:
    """A valid configuration and the origin of each dotted key."""

    config: Config
    origins: Mapping[str, str]


def presets() -> list[str]:
    """Return the names of the shipped presets."""
    return sorted(p.name.removesuffix(".yaml") for p in files("bat_core.config").joinpath("presets").iterdir())


def preset_layer(name: str) -> Layer:
    """Return the preset called `name`. Raises `ConfigError` with the nearest name."""
    if name not in presets():
        raise ConfigError(f"unknown preset {name!r}", remedy=_nearest(name, presets()))
    text = files("bat_core.config").joinpath("presets", f"{name}.yaml").read_text()
    return Layer(f"preset {name}", _parse(text, f"preset {name}"))


def file_layer(path: Path) -> Layer:
    """Return the YAML file at `path`. Raises `ConfigError` naming the file."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"can't read the configuration {path}: {error}", remedy="check --config") from error
    return Layer(str(path), _parse(text, str(path)))


def override_layer(pairs: Sequence[str]) -> Layer:
    """Return `key=value` pairs from the command line as a layer."""
    for pair in pairs:
        if "=" not in pair:
            raise ConfigError(f"{pair!r} is not of the form key=value", remedy="for example train.steps=4")
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    try:
        return Layer("command line", _plain(OmegaConf.from_dotlist(list(pairs)), "command line"))
    except (OmegaConfBaseException, YAMLError, ValueError) as error:
        raise ConfigError(f"can't read the overrides: {error}", remedy="write key=value") from error


def _parse(text: str, source: str) -> Mapping[str, Any]:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    try:
        return _plain(OmegaConf.create(text or "{}"), source)
    except (OmegaConfBaseException, YAMLError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise ConfigError(f"{source} is not valid YAML: {first}", remedy="mend the file") from error


def _plain(node: Any, source: str) -> Mapping[str, Any]:
    from omegaconf import OmegaConf

    values = OmegaConf.to_container(node, resolve=True)
    if not isinstance(values, dict):
        raise ConfigError(f"{source} must hold keys and values", remedy="for example 'seed: 1'")
    return {str(key): value for key, value in values.items()}


def resolve(layers: Sequence[Layer]) -> Resolved:
    """Merge layers, the later the stronger, and validate.

    Raises:
        ConfigError: For an unknown key (with the nearest one) or an impossible value, naming the layer.
    """
    from omegaconf import OmegaConf

    origins: dict[str, str] = {}
    for layer in layers:
        for key, _value in _leaves(layer.values):
            _check_key(key, layer.source)
            origins[key] = layer.source
    merged = OmegaConf.to_container(OmegaConf.merge(*[OmegaConf.create(dict(layer.values)) for layer in layers]))
    try:
        config = Config.model_validate(merged)
    except ValidationError as error:
        raise _explain(error, origins) from error
    _check_mixture(config)
    return Resolved(config, {key: origins.get(key, "default") for key, _ in _leaves(config.model_dump())})


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def known_keys() -> list[str]:
    """Return every dotted key of the schema."""
    return [key for key, _ in _leaves(Config().model_dump())]


def _check_key(key: str, source: str) -> None:
    model: type[BaseModel] | None = Config
    for part in key.split("."):
        fields = model.model_fields if model else {}
        if part not in fields:
            raise ConfigError(f"unknown key {key!r} in {source}", remedy=_nearest(key, known_keys()))
        kind = fields[part].annotation
        model = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _nearest(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, 1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"


def _explain(error: ValidationError, origins: Mapping[str, str]) -> ConfigError:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    return ConfigError(
        f"{key}={first['input']!r} in {origins.get(key, 'the configuration')}: {first['msg'].lower()}",
        remedy="see `bat config schema`",
    )


def _check_mixture(config: Config) -> None:
    mixture, groups = config.mixture, config.train.groups
    if abs(mixture.target + mixture.mix + mixture.e2e - 1) > 1e-9:
        raise ConfigError("mixture.target + mixture.mix + mixture.e2e must be 1", remedy="for example .5 .25 .25")
    for name in ("target", "mix", "e2e"):
        share = getattr(mixture, name) * groups
        if abs(share - round(share)) > 1e-9:
            raise ConfigError(
                f"mixture.{name}={getattr(mixture, name)} of train.groups={groups} is not a whole number of groups",
                remedy="choose train.groups so that every pool gets whole groups in each batch",
            )
