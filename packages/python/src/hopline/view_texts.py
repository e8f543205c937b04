"""The texts of a task: the answer and the plan, each a number of artifacts."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass

from .client_view import Channel, ViewText
from .growing_text import GrowingText


@dataclass(frozen=True)
class TextLabel:
    """The writer and channel of a text."""

    id: str
    channel: Channel
    agent: str | None
    call_id: str | None


class _TextState:
    __slots__ = ("content", "is_complete", "is_current", "label", "repeated", "shown", "turn")

    def __init__(self, label: TextLabel, turn: int) -> None:
        self.label = label
        self.turn = turn
        self.content = GrowingText()
        # Characters that a new attempt has repeated so far; None outside such a repetition.
        self.repeated: int | None = None
        self.is_complete = False
        self.is_current = True
        self.shown: ViewText | None = None

    def show(self) -> ViewText:
        if self.shown is None:
            label = self.label
            self.shown = ViewText(
                id=label.id,
                channel=label.channel,
                agent=label.agent,
                call_id=label.call_id,
                turn=self.turn,
                is_complete=self.is_complete,
                is_current=self.is_current,
                _content=self.content.snapshot(),
            )
        return self.shown


class ViewTexts:
    """
    Folds the texts. A new attempt of an agent begins its text again: while it repeats the text of the previous attempt, nothing changes; once it
    differs, the text is restarted. Each delta is compared only with the characters at its position.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._texts: dict[str, _TextState] = {}
        self._changed = changed
        self._shown: tuple[ViewText, ...] | None = None
        # The answer is complete. A text that opens later begins another answer.
        self._is_answered = False

    def show(self) -> tuple[ViewText, ...]:
        if self._shown is None:
            self._shown = tuple(state.show() for state in self._texts.values())
        return self._shown

    def answer(self) -> str:
        return "".join(state.content.whole() for state in self._current("answer"))

    def __contains__(self, text_id: str) -> bool:
        return text_id in self._texts

    def update(self, label: TextLabel, turn: int, text: str, *, is_replacement: bool) -> None:
        """One artifact update. `is_replacement`: a new attempt, or a text that is sent whole."""
        state = self._texts.get(label.id) or self._open(label, turn)
        if is_replacement and state.content.length > 0:
            state.repeated = 0
            state.is_complete = False
        self._add(state, text)

    def snapshot(self, label: TextLabel, turn: int, text: str) -> None:
        """The whole text so far, from a snapshot of the task."""
        state = self._texts.get(label.id) or self._open(label, turn)
        state.repeated = None
        if text.startswith(state.content.whole()):
            self._append(state, text[state.content.length :])
        else:
            self._restart(state, text)

    def keep_only(self, ids: Set[str]) -> None:
        """Voids the texts that a snapshot of the task no longer has."""
        for state in self._texts.values():
            if state.label.id not in ids and state.content.length > 0:
                self._restart(state, "")

    def end(self, text_id: str) -> None:
        state = self._texts.get(text_id)
        if state is None or state.is_complete:
            return
        # The last attempt ended with less text than the previous one.
        if state.repeated is not None:
            self._restart(state, state.content.whole()[: state.repeated])
        state.is_complete = True
        self._touch(state)
        self._changed("text-ended")

    def end_all(self) -> None:
        for text_id in list(self._texts):
            self.end(text_id)

    def begin_turn(self) -> None:
        """The texts so far belong to an earlier turn."""
        for state in self._texts.values():
            self._leave(state)
        self._is_answered = False

    def reconcile(self, label: TextLabel, turn: int, whole: str) -> None:
        """
        The whole answer has arrived. Nothing changes if the texts are equal to it. A whole answer that has only the newest texts leaves the others
        to an earlier turn, and missing text becomes a text with the id of the whole answer.
        """
        texts = self._current("answer")
        for state in texts:
            self.end(state.label.id)
        everything = self.answer()
        start = 0
        index = 0
        while index < len(texts) and not whole.startswith(everything[start:]):
            start += texts[index].content.length
            index += 1
        if index == len(texts) and everything != "":
            for state in texts:
                self._restart(state, "")
        else:
            for state in texts[:index]:
                self._leave(state)
        missing = whole if index == len(texts) else whole[len(everything) - start :]
        if missing != "":
            self.update(label, turn, missing, is_replacement=True)
            self.end(label.id)
        self._is_answered = True

    def _current(self, channel: Channel) -> list[_TextState]:
        return [state for state in self._texts.values() if state.is_current and state.label.channel == channel]

    def _open(self, label: TextLabel, turn: int) -> _TextState:
        if self._is_answered and label.channel == "answer":
            for state in self._current("answer"):
                self._leave(state)
            self._is_answered = False
        opened = self._texts[label.id] = _TextState(label, turn)
        self._shown = None
        return opened

    def _add(self, state: _TextState, delta: str) -> None:
        repeated = state.repeated
        if repeated is None:
            self._append(state, delta)
            return
        whole = state.content.whole()
        expected = whole[repeated : repeated + len(delta)]
        if not delta.startswith(expected):
            self._restart(state, whole[:repeated] + delta)
        elif repeated + len(expected) < len(whole):
            state.repeated = repeated + len(delta)
        else:
            state.repeated = None
            self._append(state, delta[len(expected) :])

    def _append(self, state: _TextState, delta: str) -> None:
        if delta == "":
            return
        state.content.append(delta)
        self._touch(state)
        self._changed("text")

    def _restart(self, state: _TextState, whole: str) -> None:
        state.repeated = None
        state.content = GrowingText(whole)
        self._touch(state)
        self._changed("text-restarted")

    def _leave(self, state: _TextState) -> None:
        state.is_current = False
        self._touch(state)

    def _touch(self, state: _TextState) -> None:
        state.shown = None
        self._shown = None
