"""What sandboxes cost: medians of many calls, as a table. Run: python benchmarks/sandbox.py [provider]."""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bat_core.hooks.sandbox import Sandbox
from bat_core.model.sandbox import SandboxSpec, SnapshotRef
from bat_core.sandboxes.bubblewrap import BubblewrapProvider
from bat_core.sandboxes.pool import SandboxPool
from bat_core.sandboxes.provider import AgentProvider
from bat_core.sandboxes.unsafe import UnsafeProcessProvider

PROVIDERS = {"bubblewrap": BubblewrapProvider, "unsafe-process": UnsafeProcessProvider}
PRELOAD = ("numpy", "nibabel", "scipy.ndimage", "PIL")
Work = Callable[[], Awaitable[object]]


async def timed(name: str, work: Work, repeats: int) -> None:
    await work()
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        await work()
        taken.append((time.perf_counter() - began) * 1000)
    quantiles = statistics.quantiles(taken, n=10)
    print(f"{name:<58}{statistics.median(taken):>9.2f}{quantiles[0]:>9.2f}{quantiles[-1]:>9.2f}")


def state(provider: AgentProvider, files: int, size: int) -> SnapshotRef:
    return provider.store.put_files(
        {f"folder{number % 7}/file{number}": bytes([number]) * (size // files) for number in range(files)}
    )


async def calls(provider: AgentProvider, spec: SandboxSpec, small: SnapshotRef, large: SnapshotRef) -> None:
    box = await provider.open(spec)
    await box.restore(small)
    await timed("exec true (30 files, both hashes)", lambda: box.exec(["true"]), 100)
    await timed("python pass, nothing preloaded (30 files, both hashes)", lambda: box.python("pass"), 100)
    await timed("write + read 10 kB", lambda: write_and_read(box), 100)
    await timed("snapshot of 30 files, 60 kB", box.snapshot, 60)
    await box.restore(large)
    await timed("exec true (100 files, 1 MB, both hashes)", lambda: box.exec(["true"]), 60)
    await timed("snapshot of 100 files, 1 MB", box.snapshot, 60)
    await timed("collect 100 files, 1 MB", box.collect, 60)
    await timed("exec with 10 MB of output", lambda: box.exec(["head", "-c", "10000000", "/dev/zero"]), 20)
    await box.stop()


async def write_and_read(box: Sandbox) -> None:
    await box.write("bench", b"x" * 10_000)
    await box.read("bench")


async def preloaded(provider: AgentProvider, spec: SandboxSpec, small: SnapshotRef) -> None:
    box = await provider.open(spec.model_copy(update={"preload": PRELOAD}))
    await box.restore(small)
    code = "open('out.txt', 'w').write(str(numpy.ones((16, 16, 16)).sum()))"
    await timed("python pass, nibabel & co preloaded (30 files)", lambda: box.python("pass"), 100)
    await timed("python writes a file, nibabel & co preloaded", lambda: box.python(code), 100)
    await timed("exec true, nibabel & co preloaded (30 files)", lambda: box.exec(["true"]), 100)
    await box.stop()


async def pooled(provider: AgentProvider, spec: SandboxSpec, ref: SnapshotRef, name: str) -> None:
    async def turn() -> None:
        await pool.release(await pool.acquire(ref))

    async with SandboxPool(provider, spec, 1) as pool:
        await timed(f"acquire + release, {name}", turn, 60)


async def opened(provider: AgentProvider, spec: SandboxSpec) -> None:
    async def cycle() -> None:
        await (await provider.open(spec)).stop()

    await timed("open + stop", cycle, 20)
    await timed("open + stop, nibabel & co preloaded", lambda: preloaded_cycle(provider, spec), 5)
    for work, name in ((cycle, "open + stop"), (lambda: one_command(provider, spec), "open + exec + stop")):
        began = time.perf_counter()
        await asyncio.gather(*[repeat(work, 15) for _ in range(2)])
        print(f"{name + ', 2 at once: sandboxes a second':<58}{30 / (time.perf_counter() - began):>9.1f}")


async def preloaded_cycle(provider: AgentProvider, spec: SandboxSpec) -> None:
    await (await provider.open(spec.model_copy(update={"preload": PRELOAD}))).stop()


async def one_command(provider: AgentProvider, spec: SandboxSpec) -> None:
    box = await provider.open(spec)
    await box.exec(["true"])
    await box.stop()


async def repeat(work: Work, times: int) -> None:
    for _ in range(times):
        await work()


async def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "bubblewrap"
    with tempfile.TemporaryDirectory() as folder:
        provider = PROVIDERS[name](Path(folder))
        spec = SandboxSpec(require=provider.guarantees)
        small, large = state(provider, 30, 60_000), state(provider, 100, 1_000_000)
        print(f"{name + ', milliseconds':<58}{'median':>9}{'p10':>9}{'p90':>9}")
        await calls(provider, spec, small, large)
        await preloaded(provider, spec, small)
        await pooled(provider, spec, small, "30 files, 60 kB")
        await pooled(provider, spec, large, "100 files, 1 MB")
        await opened(provider, spec)
        await provider.aclose()


if __name__ == "__main__":
    asyncio.run(main())
