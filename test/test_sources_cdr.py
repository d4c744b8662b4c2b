# SPDX-License-Identifier: Apache-2.0
"""Messages decoded as columns of one array, against the deserialiser of rosbags, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from prime_ros.exceptions import SourceError
from prime_ros.sources.cdr import Decoder
from prime_ros.sources.definitions import definitions

TEXT = """
string label
int8 small
float64[] values
Inner[] inner
Inner[2] pair
uint16[3] triple
string[] names
bool flag
int64 last
================================================================================
MSG: made_up/Inner
uint8 kind
float32 x
string note
"""
TYPE = "made_up/msg/Outer"
PATHS = ("small", "values", "inner.x", "pair.kind", "triple", "names", "flag", "last")
STORE = get_typestore(Stores.LATEST)
STORE.register(get_types_from_msg(TEXT, TYPE))

short = st.text(max_size=6)
floats = st.floats(width=32, allow_nan=False)
inner = st.builds(STORE.types["made_up/msg/Inner"], st.integers(0, 255), floats, short)


def outer() -> st.SearchStrategy[Any]:
    return st.builds(
        STORE.types[TYPE],
        short,
        st.integers(-128, 127),
        st.lists(st.floats(allow_nan=False), max_size=4).map(lambda v: np.array(v, dtype=np.float64)),
        st.lists(inner, max_size=3),
        st.lists(inner, min_size=2, max_size=2),
        st.lists(st.integers(0, 65535), min_size=3, max_size=3).map(lambda v: np.array(v, dtype=np.uint16)),
        st.lists(short.filter(lambda text: "\0" not in text), max_size=3),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
    )


def flat(message: Any, path: str) -> list[Any]:
    """What a dotted path names in a deserialised message, as a list."""
    found = [message]
    for name in path.split("."):
        found = [getattr(part, name) for part in found]
        found = [item for part in found for item in (part if isinstance(part, list | np.ndarray) else [part])]
    return [item.item() if isinstance(item, np.generic) else item for item in found]


@settings(max_examples=60, deadline=None)
@given(messages=st.lists(st.tuples(outer(), st.booleans()), min_size=1, max_size=12))
def test_every_message_says_what_the_deserialiser_says(messages):
    raws = [bytes(STORE.serialize_cdr(message, TYPE, little_endian=little)) for message, little in messages]
    seen = []
    for layout, rows, block in Decoder(definitions(TYPE, TEXT), TYPE, PATHS).blocks(raws):
        seen += rows.tolist()
        for path in PATHS:
            expected = [flat(messages[row][0], path) for row in rows]
            if path == "names":
                assert [list(layout.strings.get(path, ()))] * len(rows) == expected
            else:
                assert layout.values(path, block).tolist() == expected, path
    assert sorted(seen) == list(range(len(raws)))


@settings(max_examples=100, deadline=None)
@given(message=outer(), data=st.data())
def test_a_message_cut_or_altered_is_refused_or_read_never_more(message, data):
    raw = bytearray(STORE.serialize_cdr(message, TYPE))
    for _ in range(data.draw(st.integers(0, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    try:
        for layout, rows, block in Decoder(definitions(TYPE, TEXT), TYPE, PATHS).blocks([cut]):
            assert [layout.values(path, block).shape[0] for path in PATHS] == [len(rows)] * len(PATHS)
    except SourceError:
        pass


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "message 7: got nothing at its start, expected CDR"),
        (b"\x00\x07\x00\x00" + bytes(99), "message 7: got 00 07 00 00 at its start"),
        (b"\x00\x01\x00\x00\xff\xff\xff\xff", "label: got a message of 8 bytes"),
        (b"\x00\x01\x00\x00" + bytes(8) + b"\xff\xff\xff\x7f", "values: got 2147483647 elements in 16 bytes"),
    ],
)
def test_what_is_no_message_is_refused_by_its_number(raw, words):
    with pytest.raises(SourceError, match=words):
        list(Decoder(definitions(TYPE, TEXT), TYPE, PATHS).blocks([raw], first=7))


def test_bytes_behind_the_end_mean_another_definition():
    known = definitions("a/msg/B", "int32 x")
    with pytest.raises(SourceError, match="got 32 bytes, expected 8"):
        list(Decoder(known, "a/msg/B", ["x"]).blocks([b"\0\1\0\0" + bytes(28)]))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("int32 y", "got a/msg/B without x, expected all of x"),
        ("int32[1000000] big\nint32 x", "big: got 1000000 elements in 12 bytes"),
        ("wstring x", "a/msg/wstring in it is not defined"),
        ("a/C x", "a/msg/C in it is not defined"),
        ("float64[ x", "that cannot be understood"),
        ("", "without a definition in the bag"),
    ],
)
def test_definitions_that_do_not_fit_are_refused(text, words):
    with pytest.raises(SourceError, match=words):
        list(Decoder(definitions("a/msg/B", text), "a/msg/B", ["x"]).blocks([b"\0\1\0\0" + bytes(8)]))


def test_a_definition_in_idl_is_understood():
    text = "=" * 80 + "\nIDL: a/msg/B\nmodule a { module msg { struct B { double x; int32 y; }; }; };\n"
    raw = b"\0\1\0\0" + np.array([1.5]).tobytes() + b"\7\0\0\0"
    ((layout, _, block),) = Decoder(definitions("a/msg/B", text), "a/msg/B", ["x", "y"]).blocks([raw])
    assert (layout.values("x", block).tolist(), layout.values("y", block).tolist()) == ([[1.5]], [[7]])
