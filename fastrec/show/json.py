"""Results as JSON."""

from __future__ import annotations

import json

from fastrec.checks import whole_number
from fastrec.exceptions import InputTypeError, shown


def dump_json(value: object, indent: int | None = None) -> str:
    """Return a value as strict JSON. Floats keep all their digits."""
    if indent is None:
        return json.dumps(value, allow_nan=False)
    spaces = whole_number(indent)
    if spaces is None or spaces < 0:  # json would put a path in front of every line
        raise InputTypeError(
            f"indent must be an integer of at least 0, or None, found {shown(indent)}: to_json returns a string and "
            "writes no file; Report.save writes one that fastrec.load reads"
        )
    return json.dumps(value, indent=spaces, allow_nan=False)
