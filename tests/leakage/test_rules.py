"""Each rule catches a copy, plain and disguised, and passes what only looks like one."""

from __future__ import annotations

import base64
import codecs
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from bat_core.errors import LeakageError
from bat_core.leakage.panel import Panel
from bat_core.leakage.rules.answer import AnswerRule
from bat_core.leakage.rules.identifier import IdentifierRule
from bat_core.leakage.rules.path import PathRule
from bat_core.leakage.rules.text import TextRule
from bat_core.model.leakage import Checked, HeldoutItem

Check = Callable[[Any], Checked]

RULE_ITEMS = [
    ("identifier", "t1-id"),
    ("identifier", "t1-uuid"),
    ("identifier", "t1-commit"),
    ("path", "t1-path"),
    ("text", "t1-text"),
    ("answer", "t1-answer"),
    ("trace", "t1-trace"),
    ("secret", "secret"),
]

DISGUISES: dict[str, Callable[[str], Any]] = {
    "plain": lambda text: {"messages": [{"role": "user", "content": f"Look here: {text} and go on."}]},
    "upper": lambda text: f"note {text.upper()} end",
    "zero width": lambda text: "\u200b".join(text),
    "full width": lambda text: "".join(chr(ord(c) + 0xFEE0) if c.isascii() and c.isalnum() else c for c in text),
    "look-alikes": lambda text: text.translate(str.maketrans("aeopcxABEHKMOPCT", "аеорсхАВЕНКМОРСТ")),  # noqa: RUF001
    "base64": lambda text: {"blob": base64.b64encode(text.encode()).decode()},
    "url-safe": lambda text: {"blob": "data=" + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")},
    "hex": lambda text: {"blob": text.encode().hex()},
    "percent": lambda text: f"https://host/?q={quote(text, safe='')}",
    "every byte percent": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "html": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "json escapes": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    "byte escapes": lambda text: "".join(f"\\x{ord(char):02x}" for char in text),
    "json in a string": lambda text: json.dumps({"deep": [json.dumps({"deeper": text})]}),
    "base64 twice": lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
    "key": lambda text: {text: 1},
}


def fired(checked: Checked) -> set[str]:
    return {finding.rule for finding in checked.findings if finding.severity == "block"}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize(("rule", "item"), RULE_ITEMS)
def test_a_copy_is_caught(rule: str, item: str, disguise: str, check: Check, heldout: dict[str, HeldoutItem]) -> None:
    checked = check(DISGUISES[disguise](heldout[item].text))
    assert checked.verdict == "block"
    assert rule in fired(checked)


@pytest.mark.parametrize(("rule", "item"), [pair for pair in RULE_ITEMS if pair[0] != "answer"])
@pytest.mark.parametrize("turn", [lambda text: text[::-1], lambda text: codecs.encode(text, "rot13")])
def test_reversed_and_rotated_copies_are_caught(
    rule: str, item: str, turn: Callable[[str], str], check: Check, heldout: dict[str, HeldoutItem]
) -> None:
    assert rule in fired(check(["see", turn(heldout[item].text)]))


@pytest.mark.parametrize(
    "sample",
    [
        "qrx7731oboe58",
        "QRX 7731 OBOE 58",
        "qrx_7731/oboe.58",
        "Q R X 7 7 3 1 O B O E 5 8",
        "taskQRX7731OBOE58",
        {"prefix": "QRX-7731", "suffix": "OBOE-58"},
        {"n": ["QRX", 7731, "OBOE", 58]},
        {"QRX-7731": "OBOE-58"},
        "commit 9b1e4c7a2f",
        "digest " + base64.b64encode(bytes.fromhex("9b1e4c7a2f60d8835ce1f7049ab3d26e5f80c417")).decode(),
    ],
)
def test_identifiers_in_other_spellings_are_caught(sample: Any, check: Check) -> None:
    assert fired(check(sample)) == {"identifier"}


@pytest.mark.parametrize(
    "sample",
    [
        "QRX-7731-OBOE-581",
        "QRX-7731-OBOE-5",
        "QRX-7731-OBOA-58",
        "XQRX-7731-OBOE-58",
        "QRX-7731-LYRE-02",
        "QRX 7731",
        "commit 9b1e4c",
        "commit 9b1e4c8",
        "commit 9b1e4c7a2e",
        "0b1e4c7a2f",
        "case-12",
        "6f0c2b9f-51d4-4a77-9a30-c81be27d0f45",
    ],
)
def test_identifiers_that_only_look_alike_pass(sample: str, check: Check) -> None:
    assert check(sample).verdict == "pass"


@pytest.mark.parametrize(
    "sample",
    [
        r"C:\tmp\vault\kestrel_lagoon_418\ref\outline_kestrel_lagoon_418.nii.gz",
        "file:///mnt/other/outline_kestrel_lagoon_418.nii.gz",
        "ls ~/kestrel-lagoon-418/",
        {"dir": "kestrel_lagoon_418"},
    ],
)
def test_paths_under_other_roots_are_caught(sample: Any, check: Check) -> None:
    assert fired(check(sample)) == {"path"}


@pytest.mark.parametrize(
    "sample", ["/srv/vault/ref/outline.nii.gz", "kestrel_lagoon_41", "kestrel lagoon", "out/mask.nii.gz"]
)
def test_other_paths_pass(sample: str, check: Check) -> None:
    assert check(sample).verdict == "pass"


SPELLINGS = ["0.8731", ".8731", "0,8731", "87.31 %", "87.31%", "8.731e-1", "0.87310", "٠.٨٧٣١"]  # noqa: RUF001


def test_a_number_in_words_is_a_number(check: Check) -> None:
    spoken = "The rim depth of the copper basin is zero point eight seven three one."
    assert fired(check(spoken)) == {"answer"}
    assert check(spoken.replace("eight", "four")).verdict == "pass"


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_an_answer_in_any_spelling_beside_its_topic_is_caught(spelling: str, check: Check) -> None:
    assert fired(check(f"We saw the rim; its depth in the copper basin is {spelling}, they say.")) == {"answer"}
    assert fired(check({"topic": "rim depth, copper basins", "value": spelling})) == {"answer"}


@pytest.mark.parametrize(
    "sample",
    [
        "loss 0.8731 at step 12",
        "The rim depth of the copper basin is 0.8732.",
        "The rim depth of the copper basin is 10.8731.",
        "The rim depth of the brass basin is 0.8731.",
        "The rim depth of the copper basin was measured. " + "Nothing else happened then. " * 6 + "Loss 0.8731.",
        "v0.8731 rim depth copper basin",
        "0.8731x rim depth copper basin",
        "1.0.8731 rim depth copper basin",
    ],
)
def test_numbers_that_only_look_alike_pass(sample: str, check: Check) -> None:
    assert check(sample).verdict == "pass"


def test_part_of_a_text(check: Check, heldout: dict[str, HeldoutItem]) -> None:
    words = heldout["t1-text"].text.split()
    assert fired(check(" ".join(words[3:15]))) == {"text"}
    assert check(" ".join(words[3:10])).verdict == "pass"
    halves = " ".join(words[20:]) + " and so on " + " ".join(words[:20])
    assert fired(check(halves)) == {"text"}
    swapped = " ".join("oddly" if number % 9 == 4 else word for number, word in enumerate(words))
    assert fired(check(swapped)) == {"text"}


def test_words_that_several_tasks_share_are_no_leak() -> None:
    frame = (
        "Outline the structure slice by slice and write the mask next to the study; the topic is {}. Stop after that."
    )
    items = [
        HeldoutItem(item_id=name, task=name, kind="text", text=frame.format(topic))
        for name, topic in (
            ("a", "the copper basin beside the old mill pond"),
            ("b", "an amber lintel over the far gate"),
        )
    ]
    rule = TextRule()
    assert rule.prepare(items) == 2
    assert not rule.check(frame.format("a tin kettle on the near shelf by the stove"))
    assert rule.check(items[1].text)


def test_a_copy_is_a_copy_though_most_of_its_words_are_shared() -> None:
    frame = (
        "You are given one survey of the harbour taken at low tide by the crew of the day. Mark every stone of the {} "
        "that stands above the water line and write the marks next to the survey. Then say in a sentence how sure you "
        "are, stop before the submit stage if the tide has turned meanwhile, and leave other files as you found them."
    )
    items = [HeldoutItem(item_id=n, task=n, kind="text", text=frame.format(n)) for n in ("amber lintel", "copper sill")]
    rule = TextRule()
    assert rule.prepare(items) == 2
    assert not rule.check(frame.format("tin kettle"))
    assert [finding.severity for finding in rule.check(items[0].text)] == ["block"]
    mention = " ".join(items[0].text.split()[18:28])
    filler = "Nothing else was said on that day about the survey or the tide. " * 40
    assert not [finding for finding in rule.check(f"{filler} {mention} {filler}") if finding.severity == "block"]


def test_all_numbers_of_an_answer_are_needed() -> None:
    rule = AnswerRule()
    assert rule.prepare([HeldoutItem(item_id="a", task="t", kind="answer", text="granite arch: 41.7 by 12.35")]) == 1
    assert rule.check("the granite arch is 12.35 wide and 41.7 long")
    assert not rule.check("the granite arch is 41.7 long")


def test_a_digest_cut_to_mere_digits_is_no_match() -> None:
    rule = IdentifierRule()
    rule.prepare([HeldoutItem(item_id="a", task="t", kind="identifier", text="20240611a5" + "0f" * 15)])
    assert not rule.check("released 20240611")
    assert rule.check("released 20240611a5")


def test_a_passage_of_a_trace(check: Check, heldout: dict[str, HeldoutItem]) -> None:
    lines = heldout["t1-trace"].text.splitlines()
    assert "trace" in fired(check({"observation": "ok\n" + "\n".join(f"  | {line}" for line in lines[1:])}))
    assert (
        check("basinctl scan --gain 12 --probe 1,2,3\n[basinctl] settled after 9 sweeps, residue 0.5").verdict == "pass"
    )


def test_a_canary_counts_by_its_guid_and_inside_other_text(check: Check) -> None:
    assert fired(check("xx2d1a77c09e4b4f138a660b5ce9d4f721yy")) == {"secret"}
    assert check("QUARRYBENCH CANARY").verdict == "pass"


def test_weak_items_are_refused_and_not_counted(panel: Panel) -> None:
    assert panel.covered == {"answer": 2, "fact": 0, "identifier": 4, "path": 1, "secret": 1, "text": 1, "trace": 1}
    assert panel.refused == 4


def test_identifiers_without_digits_must_be_long() -> None:
    rule = IdentifierRule()
    texts = ("alder-brook", "alder-brook-lantern-fen", "a1b2c3d", "a1b2c3d4")
    items = [HeldoutItem(item_id=text, task="t", kind="identifier", text=text) for text in texts]
    assert rule.prepare(items) == 2
    assert rule.covered_ids == {"alder-brook-lantern-fen", "a1b2c3d4"}


def test_parts_that_paths_of_several_tasks_share_do_not_count() -> None:
    rule = PathRule()
    paths = {
        "a": "/data/release_pinewood_2024/x/amber_tile_0091.png",
        "b": "/data/release_pinewood_2024/y/slate_tile_0092.png",
    }
    rule.prepare([HeldoutItem(item_id=task, task=task, kind="path", text=path) for task, path in paths.items()])
    assert not rule.check("/data/release_pinewood_2024/z/other.png")
    assert rule.check("slate_tile_0092.png")


def test_a_rule_without_held_out_items_refuses_to_check() -> None:
    with pytest.raises(LeakageError, match="prepare"):
        IdentifierRule().check("text")
