from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bat_core.errors import RunError
from bat_core.report.page import write_page


class Reader(HTMLParser):
    """Collects tags, attributes and the text that a browser would show."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.text += " "

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


def page_of(run: Path) -> Reader:
    return Reader(write_page(run).read_text())


def test_the_page_lies_in_the_run(finished: Path) -> None:
    assert write_page(finished) == finished / "report" / "index.html"
    assert [path.name for path in (finished / "report").iterdir()] == ["index.html"]


def test_headline_shows_both_suites_with_paired_gain_and_interval(finished: Path) -> None:
    words = page_of(finished).words
    assert "overall 41.1 52.3" in words
    assert "paired gain of round 2 over the best before it: +11.2 [+9.2, +13.2]" in words
    assert "overall 40.2 50.7" in words
    assert "paired gain over the cold start: +10.5 [+8.5, +12.5]" in words
    assert "n = 12 cells" in words


def test_rounds_show_target_reward_kl_gain_decision_and_checks(finished: Path) -> None:
    words = page_of(finished).words
    assert "S2 is weakest, at 30.0" in words
    assert "target 2, mix 1, e2e 1" in words
    assert "0.300 0.0123 not measured 52.3 +11.2 [+9.2, +13.2] promoted because of promoted" in words
    assert "overall 0.132 -0.010 holds" in words
    assert "stage S1 not measured -0.030 broken" in words
    assert "finite every value finite holds" in words


def test_a_score_that_was_not_judged_is_never_zero(finished: Path) -> None:
    words = page_of(finished).words
    assert "not judged not measured held" in words, "overall and gain of the held round"
    assert "S2 not judged" in words
    assert "task not judged not judged" in words


def test_bank_and_rejections(finished: Path) -> None:
    words = page_of(finished).words
    assert "3 tasks, 3 states, 0 slices, 1 rejections" in words
    assert "focus left recovery left success S1 0 1 S2 1 0 E2E 0 1" in words
    assert "rule findings answer 1" in words


def test_rollouts_best_worst_breach_null_and_e2e(finished: Path) -> None:
    words = page_of(finished).words
    assert "the best: reward 0.910, task-one:S1" in words
    assert "the worst: reward 0.120, task-two:S1" in words
    assert "end to end: reward 0.440, task-five:E2E" in words
    assert "a breach: reward 0.000, task-three:S1" in words
    assert "protected path inputs/card.json was changed" in words
    assert "not judged: reward not judged, task-four:S1" in words
    assert "could not be judged: S1.c: the grader timed out" in words
    assert "task-six" not in words


def test_verdicts_stand_beside_what_was_done(finished: Path) -> None:
    words = page_of(finished).words
    assert "runs python print(1)" in words
    assert "observation an observation" in words
    assert "S1.a criterion a is met pass 1.00" in words
    assert "S1.b criterion b is met fail claimed 0.50 the file is missing" in words
    assert "S1.c criterion c is met not judged" in words


def test_agent_text_is_escaped(finished: Path, hostile: str) -> None:
    html = write_page(finished).read_text()
    reader = Reader(html)
    assert "script" not in reader.tags
    assert hostile not in html
    assert hostile in reader.text, "shown as text"


def test_agent_text_is_capped(finished: Path) -> None:
    words = page_of(finished).words
    assert "x" * 4000 in words
    assert "x" * 4001 not in words
    assert "[5000 more characters]" in words


def test_control_characters_are_shown_not_obeyed(finished: Path) -> None:
    from bat_core.report.wording import capped

    assert capped("a\x1b[31mb\u202ec\n", 100) == "a\ufffd[31mb\ufffdc\n"


def test_private_truth_stays_out(finished: Path) -> None:
    assert "needle-in-private" not in write_page(finished).read_text()


def test_the_page_loads_nothing(finished: Path) -> None:
    html = write_page(finished).read_text()
    reader = Reader(html)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name in ("src", "href", "srcset") or name.startswith("on")]
    assert not re.search(r"https?://|//cdn|@import|url\(", html)


def test_it_is_fit_for_phones_and_for_the_dark(finished: Path) -> None:
    html = write_page(finished).read_text()
    assert 'name="viewport"' in html
    assert "prefers-color-scheme: dark" in html


def test_curves_mark_decisions_and_leave_gaps(finished: Path) -> None:
    html = write_page(finished).read_text()
    assert html.count("<svg") == 4, "overall, two stages, reward"
    assert "2: 52.3 (promoted)" in html
    assert 'class="dot promoted"' in html
    overall = html[html.index("held-out overall by round") : html.index("</svg>")]
    assert overall.count("<circle") == 2, "the round that was not judged has no dot"
    assert overall.count("<polyline") == 2, "and breaks the line"


def test_work_and_time(finished: Path) -> None:
    words = page_of(finished).words
    assert "rollouts 12" in words
    assert "flat groups 2" in words
    for phase in ("bank", "coldstart", "evaluate", "mixture", "train", "decision", "blind", "total"):
        assert re.search(rf"{phase} \d+\.\d s", words)


def test_identity_settings_and_dropped_observers(finished: Path) -> None:
    words = page_of(finished).words
    assert "domain toy, seed 3; all 2 rounds done" in words
    assert "configuration sha256:c0c0" in words
    assert "seed: 3 # command line" in words
    assert "acme/watch" in words


@pytest.mark.parametrize(
    ("last", "says"),
    [
        ("bank", "the last finished phase is bank"),
        ("coldstart", "the last finished phase is coldstart"),
        ("evaluate", "the last finished phase is evaluate:coldstart"),
        ("mixture", "the last finished phase is mixture:2"),
        ("train", "the last finished phase is train:2"),
        ("candidate", "the last finished phase is evaluate:2"),
        ("decision", "the last finished phase is decision:2"),
        ("blind", "the last finished phase is blind:best"),
    ],
)
def test_an_unfinished_run_gets_a_page_of_what_is_there(make_run: Callable[..., Path], last: str, says: str) -> None:
    words = page_of(make_run(last)).words
    assert f"This run is not finished: {says}. Run the same command again to go on." in words


def test_a_finished_run_does_not_say_it_is_unfinished(finished: Path) -> None:
    assert "not finished" not in page_of(finished).words


def test_no_promotion_leaves_the_cold_start_as_best(make_run: Callable[..., Path]) -> None:
    words = page_of(make_run("train")).words
    assert "overall 41.1 41.1" in words
    assert "no round was promoted" in words


def test_a_run_that_has_just_begun(tmp_path: Path) -> None:
    from bat_core.evolve.directory import RunDirectory

    with RunDirectory(tmp_path / "new"):
        words = page_of(tmp_path / "new").words
    assert "no phase is finished yet" in words
    assert "overall not yet not yet" in words


def test_rollouts_of_a_run_without_tables_are_left_out(finished: Path) -> None:
    (finished / "rounds" / "02" / "rollouts.parquet").unlink()
    (finished / "bank" / "states.parquet").unlink()
    assert "No rollouts are recorded." in page_of(finished).words


def test_writing_again_replaces_the_page(finished: Path) -> None:
    first = write_page(finished).read_text()
    assert write_page(finished).read_text() == first


def missing(run: Path) -> None:
    (run / "journal.sqlite").unlink()


def empty(run: Path) -> None:
    (run / "journal.sqlite").write_bytes(b"")


def overwritten(run: Path) -> None:
    (run / "journal.sqlite").write_bytes(b"not a database" * 400)


def cut(run: Path) -> None:
    data = (run / "journal.sqlite").read_bytes()
    (run / "journal.sqlite").write_bytes(data[:5000])


def metrics(run: Path) -> None:
    (run / "rounds" / "02" / "metrics.jsonl").write_text('{"step": 1, "rew')


def rollouts(run: Path) -> None:
    (run / "rounds" / "02" / "rollouts.parquet").write_bytes(b"PAR1 nothing")


def summary(run: Path) -> None:
    (run / "summary.json").write_text("{}")


@pytest.mark.parametrize("damage", [missing, empty, overwritten, cut, metrics, rollouts, summary])
def test_damage_is_one_line_with_a_remedy(finished: Path, damage: Callable[[Path], None]) -> None:
    damage(finished)
    with pytest.raises(RunError) as caught:
        write_page(finished)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)
    assert not (finished / "report").exists()


def test_reading_does_not_make_a_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no run"):
        write_page(tmp_path)
    assert list(tmp_path.iterdir()) == []
