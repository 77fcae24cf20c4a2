from __future__ import annotations

import inspect
import re

import pytest

from bat_core import errors
from bat_core.errors import BatError

CLASSES = [value for value in vars(errors).values() if inspect.isclass(value)]


def test_the_tree_drawn_at_the_top_is_the_tree_of_the_classes() -> None:
    drawn: dict[str, str] = {}
    above = {0: "BatError"}
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"^([│ ]*)[├└]── (\w+)", line)
        if match:
            depth = len(match[1]) // 4
            drawn[match[2]] = above[depth]
            above[depth + 1] = match[2]
    assert drawn == {cls.__name__: cls.__bases__[0].__name__ for cls in CLASSES if cls is not BatError}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_message_says_what_to_do_next(cls: type[BatError]) -> None:
    error = cls("the disk is gone", remedy="plug it in")
    assert isinstance(error, BatError)
    assert str(error) == "the disk is gone; plug it in"
    assert error.remedy == "plug it in"
    assert str(cls("only this")) == "only this"
