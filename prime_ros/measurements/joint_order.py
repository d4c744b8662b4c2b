# SPDX-License-Identifier: Apache-2.0
"""Orders of the joints that are mistaken for each other: the vendor's, and sides swapped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from prime_ros.robot import Robot

#: Parts of a joint's name that a swap exchanges.
SIDES = (("FL", "FR"), ("RL", "RR"), ("LF", "RF"), ("LH", "RH"), ("HL", "HR"), ("left", "right"), ("L", "R"))
ENDS = (("FL", "RL"), ("FR", "RR"), ("LF", "LH"), ("RF", "RH"), ("FL", "HL"), ("FR", "HR"), ("front", "rear"))


def mistaken_orders(robot: Robot) -> Iterator[tuple[str, list[int]]]:
    """Orders in which the columns of the joints could have been recorded under the names of the model.

    Yields:
        What was confused, and for each joint of the model the column that then holds it.
    """
    names = robot.joint_names
    vendor = robot.vendor_joint_names
    if vendor and tuple(vendor) != tuple(names):
        yield "the vendor's order under the names of the model", [vendor.index(name) for name in names]
        yield "the order of the model under the vendor's names", [names.index(name) for name in vendor]
    swaps = {"left and right": SIDES, "front and rear": ENDS}
    found = []
    for what, pairs in swaps.items():
        order = _swapped(names, pairs)
        if order is not None:
            found.append(order)
            yield f"{what} swapped", order
    if len(found) == 2:
        yield "left and right, and front and rear swapped", [found[0][column] for column in found[1]]
    yield "the reverse order", list(range(len(names)))[::-1]


def _swapped(names: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[int] | None:
    """For each joint the column of its counterpart; None if there are no counterparts."""
    counterpart = [next((other for other in _others(name, pairs) if other in names), name) for name in names]
    order = [names.index(name) for name in counterpart]
    return order if sorted(order) == list(range(len(names))) and order != sorted(order) else None


def _others(name: str, pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The name with one part replaced by its counterpart; parts are set off by anything but letters."""
    for one, other in pairs:
        for here, there in ((one, other), (other, one)):
            changed = re.sub(rf"(?<![A-Za-z]){here}(?![A-Za-z])", there, name)
            if changed != name:
                yield changed
