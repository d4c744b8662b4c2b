# SPDX-License-Identifier: Apache-2.0
"""The link from report.html to the replay beside it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote

from prime_ros.exceptions import OutputError
from prime_ros.outputs.write import REPORT_FILE

_PLACE = re.compile(r'<a id="replay" [^>]*>')
"""Where the template of the report has the link, hidden until there is a replay."""


def link_from_report(page: Path) -> bool:
    """Make the report in the folder of a replay link to it.

    Returns:
        Whether there is a report with a place for the link.

    Raises:
        OutputError: If the report cannot be changed; it is as it was then.
    """
    report = page.resolve().parent / REPORT_FILE
    if not report.is_file() or report == page.resolve():
        return False
    partial = report.with_name(f".{REPORT_FILE}.{os.getpid()}")
    try:
        text = report.read_text(encoding="utf-8")
        linked, places = _PLACE.subn(f'<a id="replay" href="{quote(page.name)}">', text, count=1)
        if places:
            partial.write_text(linked, encoding="utf-8")
            os.replace(partial, report)
    except (OSError, UnicodeDecodeError) as error:
        partial.unlink(missing_ok=True)
        raise OutputError(f"cannot link {page.name} from {report}: {error}") from error
    return bool(places)
