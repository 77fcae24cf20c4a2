from __future__ import annotations

import subprocess
import sys

import pytest

import bat_core


def test_the_list_of_names_is_small_sorted_and_true() -> None:
    assert len(bat_core.__all__) <= 40
    constants = [n for n in bat_core.__all__ if n.isupper()]
    classes = [n for n in bat_core.__all__ if n[0].isupper() and not n.isupper()]
    rest = [n for n in bat_core.__all__ if not n[0].isupper()]
    assert bat_core.__all__ == sorted(constants) + sorted(classes) + sorted(rest)
    assert all(getattr(bat_core, name) is not None for name in bat_core.__all__)
    assert set(bat_core.__all__) <= set(dir(bat_core))


def test_each_name_stands_in_the_room_that_it_says() -> None:
    for name in set(bat_core.__all__) - {"__version__", "E2E", "HOOKSPEC_VERSION", "hookimpl"}:
        assert getattr(bat_core, name).__name__ == name
        assert getattr(bat_core, name).__module__.startswith("bat_core.")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'bat_core' has no attribute 'Stge'"):
        bat_core.Stge  # noqa: B018


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, bat_core; print([m for m in sys.modules if m.startswith(('bat_core.', 'pydantic', 'pluggy'))])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_a_domain_is_written_with_the_front_door_alone() -> None:
    from bat_core import E2E, Domain, Stage, hookimpl

    stage = Stage(id="A", title="First", goal="Do it.", weight=1)
    assert issubclass(Domain, object) and stage.guard == 0.03 and E2E == "E2E" and callable(hookimpl)
