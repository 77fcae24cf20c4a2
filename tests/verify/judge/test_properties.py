"""Whatever a judge says: no yes without words that stand in a source, and votes that keep their promises."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bat_core.verify.judge.answer import Quote, parse
from bat_core.verify.judge.quotes import best, look_up
from bat_core.verify.judge.sources import Source, harmless
from bat_core.verify.judge.votes import Vote, decide

WORDS = st.text(alphabet="abc defgh\n\t012<>|", max_size=60)
QUOTES = st.builds(Quote, source=st.sampled_from(["A1", "L1", "A0", ""]), start=st.integers(0, 80),
                   end=st.integers(0, 80), text=WORDS)  # fmt: skip
VOTES = st.lists(
    st.builds(Vote, yes=st.sampled_from([True, False, None]), trust=st.floats(0, 1), reason=st.just("why")),
    min_size=1, max_size=9,
)  # fmt: skip


@given(st.lists(QUOTES, max_size=4), WORDS, WORDS, WORDS)
def test_a_quote_is_worth_something_only_if_it_stands_there(quotes: list[Quote], one: str, two: str, code: str) -> None:
    sources = {"A1": Source("A1", one), "L1": Source("L1", two, 0.5, code)}
    for quote in quotes:
        found = look_up(quote, sources, "the statement")
        assert 0 <= found.trust <= 1
        if found.trust:
            folded = " ".join(quote.text.split())
            assert len(folded) >= 12 and folded in " ".join(sources[quote.source].text.split())
            assert found.trust <= sources[quote.source].trust
    top = best(quotes, tuple(sources.values()), "the statement").trust
    assert top == max((look_up(quote, sources, "the statement").trust for quote in quotes), default=0.0)


@given(VOTES)
def test_votes_decide_by_more_than_half_of_all(votes: list[Vote]) -> None:
    found = decide(votes)
    yes, no, missing = ([vote.yes for vote in votes].count(kind) for kind in (True, False, None))
    if found.passed is True:
        assert 2 * yes > len(votes)
        assert found.eta <= yes / (yes + no) + 1e-9 and found.eta <= max(vote.trust for vote in votes)
    elif found.passed is False:
        assert 2 * no >= len(votes) or not missing
    else:
        assert missing and found.reason
    assert decide(list(reversed(votes))).passed is found.passed


@given(VOTES, st.integers(0, 8))
def test_one_more_yes_never_turns_a_pass_into_a_failure(votes: list[Vote], place: int) -> None:
    at = place % len(votes)
    better = [*votes[:at], Vote(True, 1.0, "why"), *votes[at + 1 :]]
    if decide(votes).passed is True:
        assert decide(better).passed is True and decide(better).eta >= decide(votes).eta - 1e-9


@given(st.text(max_size=200))
def test_any_text_is_an_answer_or_a_reason(text: str) -> None:
    read = parse(text)
    assert (read.value is None) == bool(read.reason)


@given(st.text(max_size=400), st.integers(200, 300))
def test_what_is_shown_is_harmless_and_short(text: str, longest: int) -> None:
    shown = harmless(text, longest)
    assert "<" not in shown and ">" not in shown and "```" not in shown and len(shown) <= longest + 40
