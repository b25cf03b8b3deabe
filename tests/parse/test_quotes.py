"""What a server repeats of its users is not its own word."""

from __future__ import annotations

from watchd.parse import quotes

AUDIT = b"""\
serving
audit: user=u-88213 chars=611 text follows
Killed
audit: end of text user=u-88213
serving
"""


def test_what_lies_between_the_markers_is_quoted() -> None:
    spans = quotes.spans(AUDIT)
    assert quotes.covers(spans, AUDIT.index(b"Killed"))
    assert not quotes.covers(spans, AUDIT.rindex(b"serving"))
    assert not quotes.covers(spans, AUDIT.index(b"serving"))


def test_an_end_without_a_beginning_quotes_nothing() -> None:
    assert not quotes.spans(b"[n:1] *** Process received signal ***\n[n:1] *** End of error message ***\n")


def test_a_beginning_without_an_end_hides_no_crash() -> None:
    assert not quotes.spans(b"audit: user=1 text follows\nTraceback (most recent call last):\nKilled\n")


def test_other_writers_markers_do_not_pair() -> None:
    assert not quotes.spans(b"audit: text follows\nKilled\nother: end of text\n")


def test_what_a_line_opens_is_followed_until_it_is_closed_or_too_long() -> None:
    quote, offset = None, 0
    inside = []
    for line in AUDIT.decode().splitlines():
        quote, quoted = quotes.follow(quote, offset, line)
        inside.append(quoted)
        offset += len(line) + 1
    assert inside == [False, True, True, True, False]
    assert quote is None
    opened, _ = quotes.follow(None, 0, "--- sample step=426 reward=0.0 ---")
    assert quotes.follow(opened, 100, "Killed")[1]
    assert quotes.follow(opened, quotes.LONGEST, "Killed") == (None, False)


def test_a_line_that_only_speaks_of_texts_opens_nothing() -> None:
    for line in (
        "text follows the prompt",
        "BEGIN",
        "-- sample",
        "warning: traceback follows",
        "audit: end of text follows",
    ):
        assert quotes.follow(None, 0, line) == (None, False), line


def test_every_line_that_opens_holds_a_needle() -> None:
    for line in ("audit: text follows", "<<< BEGIN PROMPT", "--- sample step=1 ---"):
        assert quotes.opening(line) is not None
        assert any(needle in line.encode() for needle in quotes.OPENING_NEEDLES)
