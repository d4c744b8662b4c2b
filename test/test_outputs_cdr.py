# SPDX-License-Identifier: Apache-2.0
"""Messages of many knots encoded at once are, to the byte, those that rosbags encodes one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from prime_ros.outputs import messages
from prime_ros.outputs.cdr import encode


def test_encoding_agrees_with_rosbags_for_every_kind_of_field() -> None:
    definition = """
bool flag
int8 a
uint64 b
string text
float32 c
float64[3] fixed
int16[] open
float64[] none
string[2] texts
geometry_msgs/Point[] points
geometry_msgs/Point[2] corners
string[] empty
char last
"""
    store = get_typestore(Stores.ROS2_HUMBLE)
    store.register(get_types_from_msg(definition, "test/msg/All"))
    count, random = 5, np.random.default_rng(0)
    values: dict[str, Any] = {
        "flag": np.array([True, False, True, True, False]),
        "a": -3,
        "b": 2**40 + np.arange(count),
        "text": "ψ and more",
        "c": random.normal(size=count),
        "fixed": random.normal(size=(count, 3)),
        "open": [1, -2, 3],
        "texts": ["", "x"],
        "points": [{"x": random.normal(size=count), "z": 1.0}],
        "last": 7,
    }
    table = encode(store.fielddefs, "test/msg/All", values, count)
    for knot in range(count):
        expected = bytes(
            store.serialize_cdr(build(store, "test/msg/All", messages.row(values, knot)), "test/msg/All")
        )
        assert table[knot].tobytes() == expected


def build(store: Any, msgtype: str, values: dict[str, Any]) -> Any:
    """The message that a node would fill from one row of values."""
    fields = {}
    for name, (kind, definition) in store.fielddefs[msgtype][1]:
        value = values.get(name)
        if kind == Nodetype.NAME:
            fields[name] = build(store, definition, value or {})
        elif kind == Nodetype.BASE:
            fields[name] = value if value is not None else "" if definition[0] == "string" else 0
        else:
            (of, inner), length = definition
            value = value if value is not None else [{}] * length
            if of == Nodetype.NAME:
                fields[name] = [build(store, inner, item) for item in value]
            else:
                fields[name] = list(value) if inner[0] == "string" else np.array(value, dtype=inner[0])
    return store.types[msgtype](**fields)


@pytest.mark.parametrize(
    ("values", "message"),
    [({"pose": 1}, "has no pose"), ({"rows": [1.0, 2.0]}, "got 2 elements, expected 3")],
)
def test_encoding_refuses_what_does_not_fit(values: dict[str, Any], message: str) -> None:
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg("float64[3] rows", "test/msg/Small"))
    with pytest.raises(ValueError, match=message):
        encode(store.fielddefs, "test/msg/Small", values, 1)
