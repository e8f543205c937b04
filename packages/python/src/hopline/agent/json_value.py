"""Values that are kept as JSON."""

from __future__ import annotations

import json
from typing import Any

# Levels of JSON in a value that clients see. protobuf refuses a message at 100 levels, and each level of JSON takes three of them.
JSON_LEVELS_MAX = 24

_INTEGER_MAX = 2**53


def json_value(value: Any) -> tuple[Any, int]:
    """A copy of the value as JavaScript reads its JSON, and the bytes of the JSON. Raises what `json` raises if the value has none."""
    encoded = json.dumps(value, ensure_ascii=False, allow_nan=False)
    size = len(encoded.encode())
    return json.loads(encoded, parse_int=_integer, parse_float=_number), size


def is_deeper_than(value: Any, levels: int) -> bool:
    if not isinstance(value, (dict, list)):
        return False
    if levels == 0:
        return True
    return any(is_deeper_than(one, levels - 1) for one in (value.values() if isinstance(value, dict) else value))


def _integer(text: str) -> int:
    value = int(text)
    if abs(value) > _INTEGER_MAX:
        raise ValueError(f"{text[:32]} is above 2^53; make it a string")
    return value


def _number(text: str) -> float | int:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) <= _INTEGER_MAX else value
