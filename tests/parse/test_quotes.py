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
