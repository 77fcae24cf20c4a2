"""Finding plugins: stevedore for "which one, by name", pluggy for "who takes part".

Names, conflicts and distributions are looked up with importlib.metadata, which sees every entry point and
where it comes from; stevedore then loads the one that was chosen.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from loguru import logger

from bat_core.errors import PluginError
from bat_core.hooks.specs import HOOKSPEC_VERSION
from bat_core.model.base import digest_of

KINDS = (
    "domains",
    "synthesizers",
    "leakage_rules",
    "verifiers",
    "curricula",
    "trainers",
    "sandboxes",
    "evaluators",
    "harnesses",
    "judges",
    "executors",
    "observers",
    "commands",
)


@dataclass(frozen=True)
class Found:
    """An entry point and the distribution that brought it."""

    kind: str
    name: str
    target: str
    distribution: str
    version: str
    entry: EntryPoint

    @property
    def qualified(self) -> str:
        """`distribution/name`, which is always unique."""
        return f"{self.distribution}/{self.name}"

    def __str__(self) -> str:
        """Kind, name, distribution, version and target in one phrase."""
        return f"{self.kind} plugin {self.name!r} from {self.distribution} {self.version} ({self.target})"


def _allowed(distribution: str) -> bool:
    wanted = os.environ.get("BAT_PLUGINS")
    if wanted is None or distribution == "bat-core":
        return True
    return distribution in {name.strip() for name in wanted.split(",")} - {"none"}


def installed(kind: str) -> list[Found]:
    """Return all plugins of a kind, sorted by name then distribution; imports none of them."""
    found = []
    for entry in entry_points(group=f"bat_core.{kind}"):
        name = entry.dist.name if entry.dist else "unknown"
        version = entry.dist.version if entry.dist else "?"
        if _allowed(name):
            found.append(Found(kind, entry.name, entry.value, name, version, entry))
    return sorted(set(found), key=lambda f: (f.name, f.distribution))


_TARGETS: dict[str, Found] = {}
"""Plugins that were loaded by `module:Class`, by package."""


def owners() -> dict[str, Found]:
    """Return the plugins that this process can have loaded by the top-level package of their code, ours left out."""
    found = {**_TARGETS}
    for kind in KINDS:
        for one in installed(kind):
            found.setdefault(_package(one.target), one)
    found.pop("bat_core", None)
    return found


def _package(target: str) -> str:
    return target.partition(":")[0].partition(".")[0]


def find(kind: str, name: str) -> Found:
    """Return the plugin that `name` means: `name` where unique, or `distribution/name`.

    Raises:
        PluginError: If there is none, or more than one.
    """
    everything = installed(kind)
    matches = [f for f in everything if name in (f.name, f.qualified)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        both = ", ".join(f.qualified for f in matches)
        raise PluginError(f"the name {name!r} of kind {kind} is taken twice: {both}", remedy="use one of these names")
    names = [f.name for f in everything]
    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    known = ", ".join(names) or "none"
    raise PluginError(f"no plugin named {name!r} of kind {kind}", remedy=f"{hint}installed: {known}")


def _load(found: Found) -> Any:
    """Return what the entry point names; of several of that name only this one is imported."""
    from stevedore.driver import DriverManager

    class Chosen(DriverManager):  # type: ignore[misc]
        def list_entry_points(self) -> list[EntryPoint]:
            return [found.entry]

    failure: list[BaseException] = []

    def failed(_manager: Any, _entry: EntryPoint, error: BaseException) -> None:
        failure.append(error)

    try:
        return Chosen(f"bat_core.{found.kind}", found.name, on_load_failure_callback=failed).driver
    except Exception as error:  # noqa: BLE001  # boundary: a foreign module may raise anything while it is imported
        cause = failure[0] if failure else error
    raise PluginError(
        f"{found} failed to import: {type(cause).__name__}: {cause}",
        remedy=f"mend or reinstall it: pip install --force-reinstall {found.distribution}",
    ) from cause


def load(kind: str, name: str) -> Any:
    """Return the class behind a name. `module:Class` is taken as it is.

    Raises:
        PluginError: If it can't be found or imported, or was written for another hook API; with distribution,
            version, target and remedy.
    """
    found = _load_target(kind, name) if ":" in name else _load(find(kind, name))
    if kind != "domains":  # those have to say it, see load_domain
        _check_api(f"{kind} plugin {name!r}", found)
    return found


def _check_api(what: str, plugin: object, *, needed: bool = False) -> None:
    """Check that a plugin which says for what hook API it was written (`api`) means the major version of ours.

    Raises:
        PluginError: If it means another one, or says nothing although that is `needed`.
    """
    api = str(getattr(plugin, "api", "none" if needed else HOOKSPEC_VERSION))
    if api.partition(".")[0] != HOOKSPEC_VERSION.partition(".")[0]:
        raise PluginError(
            f"{what} was written for hook API {api}; this bat-core speaks {HOOKSPEC_VERSION}",
            remedy=f"install a matching version of the {'domain' if needed else 'plugin'} or of bat-core",
        )


def _load_target(kind: str, target: str) -> Any:
    entry = EntryPoint(target, target, f"bat_core.{kind}")
    _TARGETS[_package(target)] = Found(kind, target, target, "a module", "without a version", entry)
    try:
        return entry.load()
    except Exception as error:  # boundary: a foreign module may raise anything while it is imported
        raise PluginError(
            f"{kind} {target!r} failed to import: {type(error).__name__}: {error}",
            remedy="check the module and class name",
        ) from error


def load_domain(name: str) -> Any:
    """Return an instance of the domain called `name`.

    Raises:
        PluginError: If it is missing, broken, or written for another hook API.
    """
    cls = load("domains", name)
    _check_api(f"domain {name!r} ({cls.__module__})", cls, needed=True)
    try:
        return cls()
    except Exception as error:  # boundary: a foreign constructor may raise anything
        raise PluginError(
            f"domain {name!r} ({cls.__module__}:{cls.__qualname__}) can't be made: {type(error).__name__}: {error}",
            remedy="implement its abstract methods, and take no arguments",
        ) from error


def package_digest(module: str) -> str:
    """Return the digest of a package's (or single module's) Python files: a domain that changed is another domain."""
    package = sys.modules[module.partition(".")[0]]
    if hasattr(package, "__path__"):
        root = Path(next(iter(package.__path__)))
        files = sorted(root.rglob("*.py"))
    else:
        files = [Path(str(package.__file__))]
        root = files[0].parent
    return digest_of([[str(path.relative_to(root)), digest_of(path.read_bytes())] for path in files])


def load_all(kind: str) -> list[tuple[Found, Any]]:
    """Return every plugin of a kind, loaded. One that is broken stops: nobody may remove a leakage rule."""
    return [(found, load(kind, found.qualified)) for found in installed(kind)]


def _unmarked(observer: object) -> str:
    """Return the first method that is named like a hook but lacks `@hookimpl`, empty if there is none."""
    for name in dir(observer):
        if name.startswith("bat_") and not hasattr(getattr(observer, name), "bat_core_impl"):
            return name
    return ""


class Observers:
    """Calls all observers of an event one by one, so that one that raises can't stop the rest."""

    def __init__(self, extra: Sequence[object] = ()) -> None:
        import pluggy

        from bat_core.hooks import specs

        self._manager = pluggy.PluginManager("bat_core")
        self._manager.add_hookspecs(specs)
        self._strict = os.environ.get("BAT_STRICT_PLUGINS") == "1"
        self._failures: dict[str, int] = {}
        self.dropped: list[str] = []
        for name, make in self._candidates(extra):
            self._register(name, make)

    def _candidates(self, extra: Sequence[object]) -> list[tuple[str, Callable[[], object]]]:
        named: list[tuple[str, Callable[[], object]]] = []
        for found in installed("observers"):
            named.append((found.qualified, partial(_observer, found)))
        for number, one in enumerate(extra, 1):
            named.append((f"{type(one).__name__}#{number}", partial(_same, one)))
        return named

    def _register(self, name: str, make: Callable[[], object]) -> None:
        try:
            observer = make()
            _check_api(type(observer).__name__, observer)
            if unmarked := _unmarked(observer):
                raise PluginError(f"{type(observer).__name__}.{unmarked} lacks @hookimpl", remedy="mark it")
            self._manager.register(observer, name)
            self._manager.check_pending()
        except Exception as error:  # boundary: a foreign observer must not stop a run
            if self._manager.has_plugin(name):
                self._manager.unregister(name=name)
            if self._strict:
                raise _strictly(f"observer {name} is not usable: {_one_line(error)}") from error
            logger.warning("observer {} skipped: {}", name, _one_line(error))
            self.dropped.append(name)

    def emit(self, event: str, **values: object) -> None:
        """Call `event` on every observer; one that raises is logged once and dropped after three."""
        for implementation in list(getattr(self._manager.hook, event).get_hookimpls()):
            name = str(implementation.plugin_name)
            try:
                implementation.function(**{key: values[key] for key in implementation.argnames})
            except Exception as error:  # noqa: BLE001  # boundary: a foreign observer must not stop a run
                self._failed(name, event, error)

    def _failed(self, name: str, event: str, error: Exception) -> None:
        if self._strict:
            raise _strictly(f"observer {name} raised in {event}: {_one_line(error)}") from error
        self._failures[name] = self._failures.get(name, 0) + 1
        if self._failures[name] == 1:
            logger.opt(exception=error).warning("observer {} raised in {}", name, event)
        if self._failures[name] == 3:
            logger.warning("observer {} dropped after three failures", name)
            self._manager.unregister(name=name)
            self.dropped.append(name)


def _observer(found: Found) -> object:
    loaded = _load(found)
    return loaded() if isinstance(loaded, type) else loaded


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _same(one: object) -> object:
    return one


def _strictly(message: str) -> PluginError:
    return PluginError(message, remedy="mend it or unset BAT_STRICT_PLUGINS")
