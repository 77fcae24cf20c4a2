"""Provider `docker`: a warm container a sandbox, its agent driven through an attached stream."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar

from bat_core.errors import CapabilityError, SandboxUnavailable
from bat_core.model.sandbox import DEFAULT_GUARANTEES, Guarantee, SandboxSpec
from bat_core.sandboxes.bundle import agent_program
from bat_core.sandboxes.docker.archive import write_archive
from bat_core.sandboxes.docker.container import OWNER, Birth, remove, with_api
from bat_core.sandboxes.docker.engine import REMEDY, Engine, failures
from bat_core.sandboxes.docker.image import fingerprint, system_layer, toolbelt_layer
from bat_core.sandboxes.docker.layer import Layer
from bat_core.sandboxes.docker.options import USER, container_options
from bat_core.sandboxes.environment import environment
from bat_core.sandboxes.hostpython import VENV, host_python
from bat_core.sandboxes.owner import parse
from bat_core.sandboxes.probed import ProbedProvider
from bat_core.sandboxes.provider import Launch

REPOSITORY = "bat-sandbox"
_AGENT = ["-s", "-S", "-B", "-X", "utf8", "-c"]


class DockerProvider(ProbedProvider):
    """Containers without network, capabilities or a writable root, and with hard limits.

    Args:
        store: Folder of the content store.
        runtime: OCI runtime, such as `runsc`, whose own kernel is then promised if a canary finds one.
    """

    name: ClassVar[str] = "docker"
    remedy: ClassVar[str] = REMEDY
    runtimes: ClassVar[bool] = True
    limits_cpus: ClassVar[bool] = True

    def __init__(self, store: Path, runtime: str | None = None) -> None:
        super().__init__(store)
        self.runtime = runtime or None
        self.engine = Engine()
        self._images: dict[tuple[Any, ...], Future[str]] = {}
        self._systems: dict[tuple[str, ...], Layer] = {}

    @property
    def promised(self) -> frozenset[Guarantee]:
        """What every engine's limits hold, and a kernel of its own where a runtime was asked for."""
        hard = DEFAULT_GUARANTEES | {Guarantee.MEM_TOTAL, Guarantee.INODES}
        return hard | {Guarantee.KERNEL} if self.runtime else hard  # whether it has one is for the canary to find

    async def launch(self, spec: SandboxSpec) -> Launch:
        """Start a container around an agent."""
        image = await self.image(spec)
        python = "python3" if spec.image else f"{VENV}/bin/python3"
        command = [python, *_AGENT, agent_program(compiled=not spec.image)]
        options = container_options(await self.engine.call(self.engine.api), spec, image, command, self.runtime)
        container = await Birth(self.engine, options, self.max_body(spec)).container()
        site = () if spec.image else host_python().site
        config = self.config(
            spec,
            workspace="/workspace",
            scratch=["/tmp", "/dev/shm"],
            env=environment(spec, f"{VENV}/bin:/usr/local/bin:/usr/bin:/bin"),
            paths=[*(["/toolbelt"] if spec.toolbelt else []), *site],
            namespace=True,
            own_user=False,
        )
        return Launch(container, config)

    async def image(self, spec: SandboxSpec) -> str:
        """Return the image of `spec`, which is built if the engine hasn't got it. Raises `SandboxUnavailable`."""
        key = (spec.image, spec.preload, spec.toolbelt)
        if key not in self._images:
            work = self._given if spec.image else self._own
            self._images[key] = self.engine.submit(lambda: work(spec))
        being_made = self._images[key]
        found = ""
        try:
            found = await asyncio.shield(asyncio.wrap_future(being_made))
        finally:
            if not found and being_made.done():
                self._images.pop(key, None)  # the next one tries again
        return found

    async def build(self, spec: SandboxSpec) -> str:
        """Build the image of `spec` anew and return its id, which depends on its content alone."""
        if spec.image:
            raise CapabilityError(
                f"the domain names the image {spec.image!r} itself", remedy=f"docker pull {spec.image}"
            )
        self._systems.clear()
        return await self.engine.call(lambda: self._load(self._layers(spec)))

    async def reap(self) -> Sequence[str]:
        """Remove the containers of processes that are no more, and nothing else."""
        return await self.engine.call(self._reap)

    async def aclose(self) -> None:
        """Stop all sandboxes of this provider."""
        await super().aclose()
        await self.engine.settle()
        self._systems.clear()
        self.engine.close()

    def _given(self, spec: SandboxSpec) -> str:
        found = with_api(self.engine, lambda api: api.images(name=spec.image))
        if not found:
            raise SandboxUnavailable(
                f"the Docker engine has no image {spec.image!r}", remedy=f"docker pull {spec.image}"
            )
        return str(spec.image)

    def _own(self, spec: SandboxSpec) -> str:
        layers = self._layers(spec)
        tag = f"{REPOSITORY}:{fingerprint(layers)}"
        if not with_api(self.engine, lambda api: api.images(name=tag)):
            self._load(layers)
        return tag

    def _load(self, layers: Sequence[Layer]) -> str:
        tag = f"{REPOSITORY}:{fingerprint(layers)}"
        with tempfile.TemporaryFile() as archive:
            written = write_archive(layers, _IMAGE, tag, archive)
            archive.seek(0)
            with_api(self.engine, lambda api: list(api.load_image(archive)))
        return written.id

    def _layers(self, spec: SandboxSpec) -> list[Layer]:
        if spec.preload not in self._systems:
            self._systems[spec.preload] = system_layer(spec.preload, USER)
        system = self._systems[spec.preload]
        return [system, toolbelt_layer(Path(spec.toolbelt))] if spec.toolbelt else [system]

    def _reap(self) -> list[str]:
        api = self.engine.api()
        try:
            found = api.containers(all=True, filters={"label": OWNER})
        except failures():
            return []
        dead = [one["Id"] for one in found if _orphaned(one.get("Labels") or {})]
        return [name for name in dead if remove(self.engine, name)]


def _orphaned(labels: Mapping[str, str]) -> bool:
    owner = parse(labels.get(OWNER, ""))
    return owner is not None and owner.dead


_IMAGE: dict[str, Any] = {
    "Env": [f"PATH={VENV}/bin:/usr/bin:/bin", "LANG=C.UTF-8"],
    "User": f"{USER}:{USER}",
    "WorkingDir": "/workspace",
}
