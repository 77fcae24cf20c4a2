"""What sandboxes cost: medians of many calls, one table for all backends in one run.

Run: python benchmarks/sandbox.py [bubblewrap docker unsafe-process ...]; docker needs an engine (.ci/docker-engine).
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bat_core.hooks.sandbox import Sandbox
from bat_core.model.sandbox import Limits, SandboxSpec, SnapshotRef
from bat_core.sandboxes.bubblewrap import BubblewrapProvider
from bat_core.sandboxes.docker.provider import DockerProvider
from bat_core.sandboxes.landlock import LandlockProvider
from bat_core.sandboxes.pool import SandboxPool
from bat_core.sandboxes.provider import AgentProvider
from bat_core.sandboxes.unsafe import UnsafeProcessProvider

PROVIDERS = {one.name: one for one in (BubblewrapProvider, DockerProvider, LandlockProvider, UnsafeProcessProvider)}
PRELOAD = ("numpy", "nibabel", "scipy.ndimage", "PIL")
LIMITS = Limits(disk=128 << 20, exec_s=60)
Work = Callable[[], Awaitable[object]]
ROWS: dict[str, dict[str, str]] = {}
COLUMN = ""


def note(row: str, text: str) -> None:
    ROWS.setdefault(row, {})[COLUMN] = text
    print(f"  {COLUMN:<16}{row:<58}{text:>18}", file=sys.stderr, flush=True)


async def timed(row: str, work: Work, repeats: int) -> float:
    await work()
    taken = [await took(work) for _ in range(repeats)]
    median = statistics.median(taken)
    note(row, f"{median:.2f} ({min(taken):.2f})")
    return median


async def took(work: Work) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1000


def state(provider: AgentProvider, files: int, size: int) -> SnapshotRef:
    return provider.store.put_files(
        {f"folder{number % 7}/file{number}": bytes([number % 256]) * (size // files) for number in range(files)}
    )


async def calls(provider: AgentProvider, spec: SandboxSpec) -> None:
    small, large, huge = [state(provider, *size) for size in ((30, 60_000), (100, 1_000_000), (500, 50_000_000))]
    box = await provider.open(spec)
    await timed("exec true, empty workspace", lambda: box.exec(["true"]), 100)
    await box.restore(small)
    await timed("exec true, 30 files (two tree hashes)", lambda: box.exec(["true"]), 100)
    await timed("python pass, nothing preloaded", lambda: box.python("pass"), 60)
    await timed("write and read 10 kB", lambda: write_and_read(box), 60)
    await timed("restore of 1 MB, 100 files", lambda: box.restore(large), 30)
    await timed("snapshot of 1 MB, 100 files", box.snapshot, 30)
    await timed("exec true, 1 MB (two tree hashes)", lambda: box.exec(["true"]), 30)
    await timed("restore of 50 MB, 500 files", lambda: box.restore(huge), 5)
    await timed("snapshot of 50 MB, 500 files", box.snapshot, 5)
    await timed("exec with 10 MB of output", lambda: box.exec(["head", "-c", "10000000", "/dev/zero"]), 10)
    await box.stop()


async def write_and_read(box: Sandbox) -> None:
    await box.write("bench", b"x" * 10_000)
    await box.read("bench")


async def preloaded(provider: AgentProvider, spec: SandboxSpec) -> None:
    wide = spec.model_copy(update={"preload": PRELOAD})
    box = await provider.open(wide)
    await box.restore(state(provider, 30, 60_000))
    code = "img = nibabel.Nifti1Image(numpy.ones((8, 8, 8), numpy.float32), numpy.eye(4)); print(img.shape)"
    await timed("python with nibabel preloaded makes an image", lambda: box.python(code), 60)
    cold = ["python3", "-c", f"import numpy, nibabel; {code}"]
    await timed("the same in a python of its own", lambda: box.exec(cold), 5)
    await timed("exec true, nibabel & co preloaded", lambda: box.exec(["true"]), 60)
    await box.stop()


async def pooled(provider: AgentProvider, spec: SandboxSpec) -> None:
    for name, ref in (("60 kB", state(provider, 30, 60_000)), ("1 MB", state(provider, 100, 1_000_000))):
        async with SandboxPool(provider, spec, 1) as pool:

            async def turn(pool: SandboxPool = pool, ref: SnapshotRef = ref) -> None:
                await pool.release(await pool.acquire(ref))

            await timed(f"hand-out of a warm sandbox, restored to {name}", turn, 60)


async def opened(provider: AgentProvider, spec: SandboxSpec, repeats: int) -> None:
    taken: list[list[float]] = []
    for _ in range(repeats):
        marks = [time.perf_counter()]
        box = await provider.open(spec)
        marks.append(time.perf_counter())
        await box.exec(["true"])
        marks.append(time.perf_counter())
        await box.stop()
        marks.append(time.perf_counter())
        taken.append([(after - before) * 1000 for before, after in itertools.pairwise(marks)])
    for row, values in zip(("start", "first exec", "close"), zip(*taken, strict=True), strict=True):
        note(row, f"{statistics.median(values):.2f} ({min(values):.2f})")
    for width in (2, 8):
        began = time.perf_counter()
        await asyncio.gather(*[one_command(provider, spec, repeats // 2) for _ in range(width)])
        note(f"sandboxes a second, {width} at once", f"{width * (repeats // 2) / (time.perf_counter() - began):.1f}")


async def one_command(provider: AgentProvider, spec: SandboxSpec, times: int) -> None:
    for _ in range(times):
        box = await provider.open(spec)
        await box.exec(["true"])
        await box.stop()


async def memory(provider: AgentProvider, spec: SandboxSpec) -> None:
    before = set(processes())
    boxes = [await provider.open(spec) for _ in range(4)]
    new = [pages for pid, pages in processes().items() if pid not in before]
    note("memory of an idle one with its keepers, MB", f"{sum(new) / len(boxes) / 1e6:.1f}")
    for box in boxes:
        await box.stop()


def processes() -> dict[str, int]:
    """Return the proportional memory of every process of this machine that we may look at."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/smaps_rollup"):
        try:
            lines = path.read_text().splitlines()
        except OSError:
            continue
        found[path.parent.name] = sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return found


async def bare(provider: DockerProvider, spec: SandboxSpec) -> None:
    """A container for each call, and calls through the exec interface of a live one: what the agent replaces."""
    image, api = await provider.image(spec), provider.engine.api()
    host = api.create_host_config(network_mode="none")

    def run() -> None:
        name = api.create_container(image, ["true"], host_config=host)["Id"]
        api.start(name)
        api.wait(name)
        api.remove_container(name, force=True)

    name = api.create_container(image, ["sleep", "600"], host_config=host)["Id"]
    api.start(name)

    def execute() -> None:
        begun = api.exec_create(name, ["true"])["Id"]
        api.exec_start(begun)
        assert api.exec_inspect(begun)["ExitCode"] == 0

    box = await provider.open(spec)
    warm, by_engine, by_container = [], [], []
    for _ in range(15):  # in turns, so that a busy machine is as busy for each
        warm += [await took(lambda: box.exec(["true"])) for _ in range(4)]
        by_engine.append(await took(lambda: asyncio.to_thread(execute)))
        by_container.append(await took(lambda: asyncio.to_thread(run)))
    await box.stop()
    await asyncio.to_thread(api.remove_container, name, force=True)
    for row, taken in (
        ("exec true in turns: the warm agent", warm),
        ("exec true in turns: the engine's exec interface", by_engine),
        ("exec true in turns: a container of its own", by_container),
    ):
        note(row, f"{statistics.median(taken):.2f} ({min(taken):.2f})")


async def measure(name: str, folder: Path) -> None:
    global COLUMN
    COLUMN = name
    provider = PROVIDERS[name](folder / name)
    spec = SandboxSpec(require=provider.guarantees, limits=LIMITS)
    await (await provider.open(spec)).stop()  # builds an image
    await opened(provider, spec, 8 if name == "docker" else 20)
    await memory(provider, spec)
    await calls(provider, spec)
    await preloaded(provider, spec)
    await pooled(provider, spec)
    if isinstance(provider, DockerProvider):
        await bare(provider, spec)
    await provider.aclose()


def main() -> None:
    names = sys.argv[1:] or ["bubblewrap"]
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            asyncio.run(measure(name, Path(folder)))
    print("| ms, median (best) | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for row, cells in ROWS.items():
        print(f"| {row} | " + " | ".join(cells.get(name, "") for name in names) + " |")


if __name__ == "__main__":
    main()
