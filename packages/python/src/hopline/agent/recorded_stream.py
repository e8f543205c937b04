"""Recorded streams: files of JSON lines `{"t": "text", "ms": 12}`, as packages/agent/src/recording reads them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .agent_events import AgentEvent
from .define_agent import Agent, Turn

FILE_BYTES_MAX = 64 * 1024 * 1024
TOKENS_MAX = 1_000_000
OFFSET_MS_MAX = 24 * 60 * 60 * 1000


class RecordingError(Exception):
    """The file cannot be played. The message names the file and line, never its content."""


@dataclass(frozen=True)
class RecordedToken:
    text: str
    ms: float | None = None
    """Milliseconds after the start at which it arrived."""


def read_stream(path: str | Path) -> list[RecordedToken]:
    """The tokens of the answer. Lines of another kind (`k`), such as reasoning, are skipped."""
    file = Path(path)
    if not file.is_file():
        raise RecordingError(f"recording {file} does not exist")
    size = file.stat().st_size
    if size > FILE_BYTES_MAX:
        raise RecordingError(f"recording {file} has {size} bytes, more than {FILE_BYTES_MAX}")
    tokens: list[RecordedToken] = []
    for ordinal, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
        if line.strip() == "":
            continue
        where = f"{file}, line {ordinal}"
        token, kind = _token_of(line, where)
        if kind not in (None, "text"):
            continue
        if len(tokens) == TOKENS_MAX:
            raise RecordingError(f"recording {file} has more than {TOKENS_MAX} tokens")
        if token.ms is not None and tokens and token.ms < (tokens[-1].ms or 0):
            raise RecordingError(f"recording {where}: ms goes back in time")
        tokens.append(token)
    if not tokens:
        raise RecordingError(f"recording {file} has no text")
    return tokens


def write_stream(path: str | Path, tokens: Iterable[RecordedToken | str]) -> None:
    """Writes a recording, such as the words of a model that a test should repeat."""
    lines = []
    for token in tokens:
        one = RecordedToken(token) if isinstance(token, str) else token
        lines.append(json.dumps({"t": one.text} if one.ms is None else {"t": one.text, "ms": one.ms}, ensure_ascii=False))
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def recorded_agent(path: str | Path, *, name: str = "recording", is_paced: bool = False) -> Agent:
    """An agent that answers every message with the recorded stream. `is_paced`: in its recorded times, else at once."""
    tokens = read_stream(path)

    async def run(_turn: Turn) -> AsyncIterator[AgentEvent]:
        loop = asyncio.get_running_loop()
        start = loop.time()
        for token in tokens:
            if is_paced and token.ms is not None:
                # Measured from the start of the turn, so that a late timer does not slow the stream down.
                await asyncio.sleep(max(0.0, start + token.ms / 1000 - loop.time()))
            yield token.text

    return Agent(name=name, description="Plays a recorded answer token by token", run=run)


def _token_of(line: str, where: str) -> tuple[RecordedToken, str | None]:
    try:
        value: Any = json.loads(line)
    except ValueError:
        raise RecordingError(f"recording {where}: not JSON") from None
    if not isinstance(value, dict):
        raise RecordingError(f"recording {where}: not an object")
    text, kind, ms = value.get("t"), value.get("k"), value.get("ms")
    if not isinstance(text, str):
        raise RecordingError(f'recording {where}: "t" must be a string')
    if kind is not None and not isinstance(kind, str):
        raise RecordingError(f'recording {where}: "k" must be a string')
    is_number = isinstance(ms, (int, float)) and not isinstance(ms, bool)
    if ms is not None and not (is_number and 0 <= ms <= OFFSET_MS_MAX):
        raise RecordingError(f'recording {where}: "ms" must be a number from 0 to {OFFSET_MS_MAX}')
    return RecordedToken(text, ms), kind
