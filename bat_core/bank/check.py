"""Checking a bank as a stranger would: digests, schema, workspaces, receipts, counts, copies, balance, leaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bat_core.bank.balance import asked_for, cells
from bat_core.bank.blobs import unsound
from bat_core.bank.counts import added, cell_of, counted, distinct
from bat_core.bank.place import Place
from bat_core.bank.store import Manifest, generations, manifest_of, part_of
from bat_core.bank.tables import COLUMNS, Prompt, Rejection, decode, slice_row, state_row
from bat_core.errors import BatError
from bat_core.hooks.domain import Domain
from bat_core.leakage.client import Preflight
from bat_core.model.base import JsonObject, Value, digest_of
from bat_core.model.run import BankReport
from bat_core.model.state import StageState
from bat_core.model.training import Slice
from bat_core.verify.chain import verify_chain

LEAST_DISTINCT = 0.95


@dataclass(frozen=True)
class Finding:
    """Something wrong: what kind (`digest`, `schema`, `count`, `copies`, `balance`, `leak`), where, and what."""

    kind: str
    where: str
    what: str


@dataclass
class _Read:
    states: list[StageState]
    slices: list[Slice]
    rejected: list[Rejection]
    prompts: list[Prompt]


def check(bank: str, domain: Domain, preflight: Preflight | None, key: bytes | None, *, full: bool) -> list[Finding]:
    """Return everything that is wrong with a bank; empty means clean.

    Args:
        bank: Folder or URL.
        domain: Whose bank it is.
        preflight: The leakage checker; None leaves leaks unchecked.
        key: The run's key, with which receipts can be checked; None leaves them.
        full: Whether cells that were never asked for are findings too.

    Raises:
        SynthesisError: If there is no bank at all.
    """
    found: list[Finding] = []
    report: BankReport | None = None
    whole = _Read([], [], [], [])
    for number in generations(bank):
        place = Place(part_of(bank, number))
        manifest = manifest_of(place.name)
        if report is not None and manifest.after != report.digest:
            found.append(Finding("digest", f"{place}/manifest.json", "it was added to another bank"))
        part, problems = _part(place, manifest)
        found += problems
        report = added(report, manifest.report)
        for name in vars(whole):
            getattr(whole, name).extend(getattr(part, name))
    assert report is not None
    found += _states(bank, whole, key)
    found += _copies(report, whole)
    found += _balance(domain, report, whole.states, full=full)
    return found + (list(_leaks(preflight, whole)) if preflight else [])


def _part(place: Place, manifest: Manifest) -> tuple[_Read, list[Finding]]:
    """Read the tables of a generation as far as they can be read."""
    rows: dict[str, list[JsonObject]] = {}
    found: list[Finding] = []
    for name, columns in COLUMNS.items():
        rows[name] = []
        try:
            data = place.read(name)
            rows[name] = decode(data)
        except (OSError, ValueError) as error:
            found.append(Finding("digest", f"{place}/{name}", f"can't be read: {_line(error)}"))
            continue
        if digest_of(data) != manifest.files.get(name):
            found.append(Finding("digest", f"{place}/{name}", "its digest is not the manifest's"))
        if rows[name] and tuple(rows[name][0]) != columns:
            found.append(Finding("schema", f"{place}/{name}", f"its columns are {', '.join(rows[name][0])}"))
            rows[name] = []
    states = _values(place, "states.parquet", rows, StageState, state_row, found)
    slices = _values(place, "slices.parquet", rows, Slice, slice_row, found)
    rejected = [Rejection(**row) for row in rows["rejected.parquet"]]
    prompts = [Prompt(**row) for row in rows["prompts.parquet"]]
    if not found:
        again = counted(states, slices, rejected, prompts, manifest.report.tasks)
        for key, value in again.model_dump(exclude={"missing", "e2e", "generation", "asked"}).items():
            if value != getattr(manifest.report, key):
                found.append(Finding("count", f"{place}/manifest.json", f"report.{key} is not what the tables hold"))
    return _Read(states, slices, rejected, prompts), found


def _values(place: Place, name: str, rows: Any, kind: Any, as_row: Any, found: list[Finding]) -> list[Any]:
    """Return the values of a table whose columns say what they hold."""
    values = []
    for number, row in enumerate(rows[name]):
        where = f"{place}/{name}[{number}]"
        try:
            value = kind.model_validate_json(row["json"])
        except ValueError as error:
            found.append(Finding("schema", where, _line(error)))
            continue
        wrong = [column for column, cell in as_row(value).items() if row[column] != cell]
        if wrong:
            found.append(Finding("digest", where, f"{', '.join(wrong)} is not what its content says"))
        values.append(value)
    return values


def _states(bank: str, whole: _Read, key: bytes | None) -> Iterator[Finding]:
    """Yield what is wrong with identities, workspaces and receipts."""
    for name, ids in (("state", [s.id for s in whole.states]), ("slice", [s.id for s in whole.slices])):
        for id_, count in Counter(ids).items():
            if count > 1:
                yield Finding("schema", f"{name} {id_}", f"stands there {count} times")
    sources = {state.digest for state in whole.states}
    for one in whole.slices:
        if one.source not in sources:
            yield Finding("digest", f"slice {one.id}", "the state that it was cut from is not in the bank")
        if one.target.role != "assistant":
            yield Finding("schema", f"slice {one.id}", f"its target is a turn of {one.target.role}")
    place = Place(bank)
    for root in sorted({state.snapshot.root for state in whole.states}):
        if why := unsound(place, root):
            yield Finding("digest", f"{place}/{root[:19]}", why)
    for state in whole.states:
        if key is not None and not verify_chain(key, state.receipts):
            yield Finding("digest", f"state {state.id}", "its receipts are not those that the run's harness wrote")


def _copies(report: BankReport, whole: _Read) -> Iterator[Finding]:
    share = distinct(whole.prompts)
    if share is not None and share < LEAST_DISTINCT:
        yield Finding("copies", "prompts", f"{share:.1%} are distinct, at least {LEAST_DISTINCT:.0%} expected")
    named = {state.task.id for state in whole.states} - {one.task for one in whole.prompts}
    if named and report.states:
        yield Finding("copies", "prompts", f"{len(named)} tasks have no prompt there, such as {min(named)}")


def _balance(domain: Domain, report: BankReport, states: Sequence[StageState], *, full: bool) -> Iterator[Finding]:
    filled = {cell_of(state.focus, state.task.track, state.stratum.value) for state in states}
    for cell in cells(domain):
        if cell in filled:
            continue
        why = report.missing.get(cell, "the report does not say why")
        if full or asked_for(why) or cell not in report.missing:
            yield Finding("balance", cell, f"no state: {why}")
    for cell in sorted(filled - set(cells(domain))):
        yield Finding("balance", cell, "the domain has no such cell")


def _leaks(preflight: Preflight, whole: _Read) -> Iterator[Finding]:
    """Yield where a state or slice holds what is held out; never the text itself."""
    samples: Iterable[tuple[str, Value]] = [
        *((f"state {one.id}", one) for one in whole.states),
        *((f"slice {one.id}", one) for one in whole.slices),
    ]
    for answer in preflight.check((name, _public(value)) for name, value in samples):
        for found in answer.findings:
            yield Finding("leak", f"{answer.id} {found.path}[{found.start}:{found.end}]", f"rule {found.rule}")


def _public(value: Value) -> JsonObject:
    shown = value.model_dump(mode="json")
    if "task" in shown:
        del shown["task"]["private"]
    return shown


def _line(error: BaseException) -> str:
    if isinstance(error, BatError) or "\n" not in str(error):
        return " ".join(str(error).split())[:200]
    return " ".join(str(error).splitlines()[1:3]).strip()[:200]
