"""The artifacts beside the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from .client_view import Json, ViewFile
from .growing_text import GrowingText
from .view_tools import agent_of


class _FileState:
    __slots__ = ("artifact", "is_complete", "parts", "shown", "turn")

    def __init__(self, artifact: Json, turn: int) -> None:
        self.artifact = artifact
        self.turn = turn
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
                is_complete=self.is_complete,
                _content=tuple(part.snapshot() if isinstance(part, GrowingText) else part for part in self.parts),
            )
        return self.shown


class ViewFiles:
    """Each file is reported once, when it is complete."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._files: dict[str, _FileState] = {}
        self._changed = changed
        self._shown: tuple[ViewFile, ...] | None = None

    def show(self) -> tuple[ViewFile, ...]:
        if self._shown is None:
            self._shown = tuple(state.show() for state in self._files.values())
        return self._shown

    def update(self, artifact: Json, turn: int, parts: Sequence[Json], *, is_replacement: bool) -> None:
        artifact_id = artifact["artifactId"]
        state = self._files.get(artifact_id)
        if state is None:
            if not parts:
                return
            state = self._files[artifact_id] = _FileState(artifact, turn)
        if is_replacement:
            state.parts = []
        state.is_complete = False
        state.push(parts)
        self._touch(state)

    def snapshot(self, artifact: Json, turn: int, parts: Sequence[Json]) -> None:
        """The whole artifact so far, from a snapshot of the task. One that was reported is not reported again."""
        state = self._files.get(artifact["artifactId"])
        if state is None or not state.is_complete:
            self.update(artifact, turn, parts, is_replacement=True)

    def keep_only(self, ids: Set[str]) -> None:
        self._files = {file_id: state for file_id, state in self._files.items() if file_id in ids}
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

    def _touch(self, state: _FileState) -> None:
        state.shown = None
        self._shown = None
