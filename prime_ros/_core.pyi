# SPDX-License-Identifier: Apache-2.0
# The compiled core documents its own types; to the type checker they are Any.
from typing import Any

def __getattr__(name: str) -> Any: ...
