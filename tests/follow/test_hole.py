"""Where text begins behind a hole, found by a few probes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchd.follow import hole


def probe(data, start, size=None, *, read=None):
    """The offset that is found, the bytes that were read for it, and the number of probes."""
    read = read or (lambda offset, length: data[offset : offset + length])
    probing = hole.first_text(start, len(data) if size is None else size)
    taken = probes = 0
    try:
        offset, length = next(probing)
        while True:
            assert length <= hole.SAMPLE
            found = read(offset, length)
            taken, probes = taken + len(found), probes + 1
            offset, length = probing.send(found)
    except StopIteration as end:
        return end.value, taken, probes


@given(st.integers(0, 100_000), st.binary(max_size=20_000), st.integers(0, 50_000))
def test_the_first_byte_that_is_not_nul_is_found(nuls, text, start):
    text = bytes(byte or 1 for byte in text)
    data = bytes(nuls) + text
    start = min(start, nuls)
    assert probe(data, start)[0] == nuls


def test_a_hole_of_forty_gigabytes_costs_less_than_a_megabyte():
    size, text = 40 * 1024**3, 10_000

    def read(offset, length):
        return b"".join(b"x" if place >= size else b"\0" for place in range(offset, offset + length))

    found, taken, probes = probe(b"", 261_000, size + text, read=read)
    assert found == size
    assert taken < 1_000_000
    assert probes < 50


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 1_000_000])
def test_a_file_of_nothing_but_nul_has_its_text_at_the_end(size):
    assert probe(bytes(size), 0)[0] == size


def test_a_file_that_shrinks_meanwhile_ends_the_search():
    assert probe(b"", 100, 1_000_000)[0] == 100


def test_leading_nuls_are_counted():
    assert [hole.nuls(data) for data in (b"", b"x\0", b"\0\0x\0", b"\0\0")] == [0, 0, 2, 2]
