"""The artifacts beside the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence, Set

from .client_view import Json, Missing, ViewFile
from .growing_text import GrowingText
from .view_tools import agent_of

FILE_BYTES_MAX = 64 * 1024 * 1024
"""Content of all files of a task that a view keeps. More is counted, and not kept."""


class _FileState:
    __slots__ = ("artifact", "bytes", "is_complete", "kept", "missing", "parts", "shown", "turn")

    def __init__(self, artifact: Json, turn: int, missing: Missing) -> None:
        self.artifact = artifact
        self.turn = turn
        self.bytes = 0
        self.kept = 0  # Bytes of `parts`.
        self.missing: Missing = missing
        self.is_complete = False
        self.parts: list[Json | GrowingText] = []
        self.shown: ViewFile | None = None

    def push(self, parts: Sequence[Json]) -> None:
        """Text without other members continues the text before it."""
        for part in parts:
            if part.keys() != {"text"}:
                self.parts.append(part)
                continue
            last = self.parts[-1] if self.parts else None
            if isinstance(last, GrowingText):
                last.append(part["text"])
            else:
                self.parts.append(GrowingText(part["text"]))

    def show(self) -> ViewFile:
        if self.shown is None:
            self.shown = ViewFile(
                id=self.artifact["artifactId"],
                name=self.artifact.get("name"),
                description=self.artifact.get("description"),
                agent=agent_of(self.artifact),
                turn=self.turn,
                bytes=self.bytes,
                missing=self.missing,
                is_complete=self.is_complete,
                _content=tuple(part.snapshot() if isinstance(part, GrowingText) else part for part in self.parts),
            )
        return self.shown


class ViewFiles:
    """Each file is reported once, when it is complete."""

    def __init__(self, changed: Callable[[str], None], bytes_max: int = FILE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._kept = 0
        self._files: dict[str, _FileState] = {}
        self._changed = changed
        self._shown: tuple[ViewFile, ...] | None = None

    def show(self) -> tuple[ViewFile, ...]:
        if self._shown is None:
            self._shown = tuple(state.show() for state in self._files.values())
        return self._shown

    def update(self, artifact: Json, turn: int, parts: Sequence[Json], *, is_replacement: bool, has_beginning: bool) -> None:
        """`has_beginning` is False if the stream began within the artifact."""
        artifact_id = artifact["artifactId"]
        state = self._files.get(artifact_id)
        if state is None:
            if not parts:
                return
            state = self._files[artifact_id] = _FileState(artifact, turn, None if has_beginning else "beginning")
        if is_replacement:
            self._drop(state)
            state.bytes = 0
            state.missing = None
        state.is_complete = False
        size = sum(map(_bytes_of, parts))
        state.bytes += size
        if self._kept + size > self._bytes_max:
            state.missing = state.missing or "excess"
            self._drop(state)
        elif state.missing != "excess":
            state.push(parts)
            state.kept += size
            self._kept += size
        self._touch(state)

    def snapshot(self, artifact: Json, turn: int, parts: Sequence[Json]) -> None:
        """The whole artifact so far, from a snapshot of the task. One that was reported is not reported again."""
        state = self._files.get(artifact["artifactId"])
        if state is None or not state.is_complete:
            self.update(artifact, turn, parts, is_replacement=True, has_beginning=True)

    def keep_only(self, ids: Set[str]) -> None:
        for file_id in self._files.keys() - ids:
            self._drop(self._files.pop(file_id))
        self._shown = None

    def end(self, file_id: str) -> None:
        state = self._files.get(file_id)
        if state is None or state.is_complete:
            return
        state.is_complete = True
        self._touch(state)
        self._changed("file")

    def end_all(self) -> None:
        for file_id in list(self._files):
            self.end(file_id)

    def _drop(self, state: _FileState) -> None:
        self._kept -= state.kept
        state.parts = []
        state.kept = 0

    def _touch(self, state: _FileState) -> None:
        state.shown = None
        self._shown = None


def _bytes_of(part: Json) -> int:
    """Bytes of the content of a part; a link has none."""
    if "text" in part:
        return len(part["text"].encode("utf-8", "surrogatepass"))
    if "raw" in part:
        # Base64 has four characters for three bytes, without its padding.
        return len(part["raw"].rstrip("=")) * 3 // 4
    if "data" in part:
        return len(json.dumps(part["data"], ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
    return 0
