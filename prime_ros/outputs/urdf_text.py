# SPDX-License-Identifier: Apache-2.0
"""Edit single elements of a URDF and keep every other byte of the file.

Tree libraries (xml.etree, lxml) keep comments but not quotes, line breaks between attributes, or the XML
declaration, so the diff of a calibrated URDF would bury the few numbers that changed. Expat, the standard
library's parser, tells where each element stands in the file; edits are spliced there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat
from xml.sax.saxutils import quoteattr, unescape

from prime_ros.exceptions import OutputError

# Quoted attribute values may hold a ">".
_TAG = re.compile(rb"""<(?:[^"'>]|"[^"]*"|'[^']*')*>""")
_FILENAME = re.compile(rb"""(?<=\s)filename\s*=\s*(?:"([^"]*)"|'([^']*)')""")


@dataclass(frozen=True)
class Span:
    """Bytes of an element: its start tag is [start, tag_end), all of it [start, end)."""

    start: int
    tag_end: int
    end: int


@dataclass
class UrdfText:
    """A URDF as a tree to read and as text to edit."""

    data: bytes
    root: ElementTree.Element
    spans: dict[ElementTree.Element, Span]
    edits: list[tuple[int, int, bytes]] = field(default_factory=list)

    @staticmethod
    def parse(data: bytes) -> UrdfText:
        """Parse the bytes of a URDF.

        Raises:
            OutputError: If it is no XML, its encoding does not extend ASCII, or its root is not <robot>.
        """
        root, spans = _parse(data)
        if root.tag != "robot":
            raise OutputError(f"the model's root element is <{root.tag}>, a URDF has <robot>")
        return UrdfText(data, root, spans)

    def replace(self, element: ElementTree.Element, lines: list[str]) -> None:
        """Put `lines` in the place of an element, at its indentation."""
        span = self.spans[element]
        self.edits.append((span.start, span.end, self._indented(lines, self._indentation(span.start))))

    def insert_first(self, element: ElementTree.Element, lines: list[str]) -> None:
        """Put `lines` before the other children of an element."""
        span = self.spans[element]
        outer = self._indentation(span.start)
        inner = self._indented(["", *lines], outer + b"  ")
        if span.tag_end < span.end:
            self.edits.append((span.tag_end, span.tag_end, inner))
            return
        slash = self.data.rindex(b"/", span.start, span.tag_end)
        closing = self._indented(["", f"</{element.tag}>"], outer)
        self.edits.append((slash, span.end, b">" + inner + closing))

    def resolve_filenames(self, directory: Path) -> None:
        """Make relative mesh and texture paths absolute from `directory`; package:// and the like stay."""
        for start, end, name in self._filenames():
            if name and "://" not in name and not Path(name).is_absolute():
                self._rename(start, end, str((directory / name).resolve()))

    def address_filenames(self) -> None:
        """Make absolute mesh and texture paths file:// addresses."""
        for start, end, name in self._filenames():
            if Path(name).is_absolute():
                self._rename(start, end, Path(name).as_uri())

    def _filenames(self) -> Iterator[tuple[int, int, str]]:
        """Start and end of every attribute that names a mesh or a texture, and the name."""
        for element, span in self.spans.items():
            if element.tag not in ("mesh", "texture"):
                continue
            match = _FILENAME.search(self.data, span.start, span.tag_end)
            if match is not None:
                name = unescape((match[1] or match[2] or b"").decode(), {"&quot;": '"', "&apos;": "'"})
                yield *match.span(), name

    def _rename(self, start: int, end: int, name: str) -> None:
        self.edits.append((start, end, f"filename={quoteattr(name)}".encode()))

    def render(self) -> bytes:
        """The file with all edits applied."""
        pieces, position = [], 0
        for start, end, text in sorted(self.edits):
            pieces += [self.data[position:start], text]
            position = end
        return b"".join([*pieces, self.data[position:]])

    def _indentation(self, start: int) -> bytes:
        before = self.data[self.data.rfind(b"\n", 0, start) + 1 : start]
        return before if not before.strip() else b""

    def _indented(self, lines: list[str], indentation: bytes) -> bytes:
        newline = b"\r\n" if b"\r\n" in self.data else b"\n"
        return (newline + indentation).join(line.encode() for line in lines)


def _parse(data: bytes) -> tuple[ElementTree.Element, dict[ElementTree.Element, Span]]:
    if b"\0" in data:
        raise OutputError("the URDF's encoding does not extend ASCII; save it as UTF-8")
    parser = expat.ParserCreate()
    builder = ElementTree.TreeBuilder()
    spans: dict[ElementTree.Element, Span] = {}
    opened: list[ElementTree.Element] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        index = parser.CurrentByteIndex
        tag = _TAG.match(data, index)
        if tag is None:
            raise OutputError("the URDF defines elements in entities; expand them first")
        element = builder.start(name, attributes)
        spans[element] = Span(index, tag.end(), tag.end())
        opened.append(element)

    def end(name: str) -> None:
        element = opened.pop()
        span = spans[element]
        if data[span.tag_end - 2 : span.tag_end] != b"/>":
            closing = data.index(b">", parser.CurrentByteIndex) + 1
            spans[element] = Span(span.start, span.tag_end, closing)
        builder.end(name)

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise OutputError(f"the URDF is not well-formed XML: {error}") from error
    return builder.close(), spans
