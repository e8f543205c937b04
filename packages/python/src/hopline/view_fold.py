"""Folds the stream of a task into its view, as packages/task-view does. A test folds random streams with both."""

from __future__ import annotations

import re
from typing import Any

from .a2a_events import INTERRUPTED_STATES, TERMINAL_STATES, artifact_kind, text_of
from .client_view import Channel, ClientView, Json, ViewQuestion
from .view_files import ViewFiles
from .view_texts import TextLabel, ViewTexts
from .view_tools import ViewTools, agent_of

_PLAIN = re.compile(r"text/(plain|markdown)\b", re.IGNORECASE | re.ASCII)
# The white space that String.prototype.trim of JavaScript removes.
_SPACE = "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"


class ViewFold:
    """
    Folds events of A2A 1.0. Streams of Hopline have names of artifacts and metadata by which plans, notices and the repeated whole answer are
    recognized; of other servers all text is the answer.
    """

    def __init__(self, *, continues: bool = False) -> None:
        """`continues`: the stream continues a task, at whose head the content so far belongs to earlier turns."""
        self._changes: list[str] = []
        self._texts = ViewTexts(self._changed)
        self._tools = ViewTools(self._changed)
        self._files = ViewFiles(self._changed)
        self._roles: dict[str, str] = {}
        # Whole answers that have not ended, by artifact id. The text is '' once it was compared, and the id stays.
        self._results: dict[str, tuple[TextLabel, str]] = {}
        self._view: ClientView | None = None
        self._task_id: str | None = None
        self._context_id: str | None = None
        self._state = "TASK_STATE_SUBMITTED"
        self._has_state = False
        self._turn = 1
        self._cursor: str | None = None
        self._progress: str | None = None
        # The line is the message of a status, whose place the next status takes.
        self._is_progress_of_status = False
        self._question: ViewQuestion | None = None
        self._asked: str | None = None
        self._failure: str | None = None
        self._usage: dict[str, float] | None = None
        self._metadata: Json | None = None
        self._gaps = 0
        self._is_continued = continues
        # The server marks its answer or its plan by name, so that artifacts with other names are not part of the answer.
        self._names_answer = False
        self._has_begun = False

    @property
    def view(self) -> ClientView:
        if self._view is None:
            self._view = ClientView(
                task_id=self._task_id,
                context_id=self._context_id,
                state=self._state,
                turn=self._turn,
                cursor=self._cursor,
                texts=self._texts.show(),
                tools=self._tools.show(),
                files=self._files.show(),
                progress=self._progress,
                question=self._question,
                failure=self._failure,
                usage=self._usage,
                metadata=self._metadata,
                gaps=self._gaps,
            )
        return self._view

    def add(self, event: Json, cursor: str | None = None) -> list[str]:
        """Adds an event, and returns the kinds of changes that it made to the view."""
        self._view = None
        self._cursor = self._cursor if cursor is None else cursor
        if "task" in event:
            self._task(event["task"])
        elif "message" in event:
            self._message(event["message"])
        elif "statusUpdate" in event:
            self._status_update(event["statusUpdate"])
        else:
            self._artifact_update(event["artifactUpdate"])
        return self._take_changes()

    def add_gap(self) -> list[str]:
        """Events have expired. The next event is the current task, which makes the view whole again."""
        self._view = None
        self._gaps += 1
        # The task that follows has all of its texts.
        self._is_continued = False
        return ["gap"]

    def _changed(self, kind: str) -> None:
        self._changes.append(kind)

    def _take_changes(self) -> list[str]:
        changes = self._changes.copy()
        self._changes.clear()
        return changes

    def _task(self, task: Json) -> None:
        self._begin(task["id"], task["contextId"])
        artifacts = task.get("artifacts", [])
        status = task["status"]
        message = status.get("message")
        ids = {artifact["artifactId"] for artifact in artifacts}
        if message is not None:
            ids.add(message["messageId"])
        if self._has_begun:
            # A transitory text is removed at the end of the task, and a message with the text remains.
            is_kept = (
                status["state"] in TERMINAL_STATES and message is not None and text_of(message["parts"]) == self._texts.answer()
            )
            if not is_kept:
                self._texts.keep_only(ids)
            self._files.keep_only(ids)
        if _is_in_progress(status["state"]) and self._state in INTERRUPTED_STATES:
            self._begin_turn()
        for artifact in artifacts:
            self._artifact(artifact, is_snapshot=True)
        self._has_begun = True
        if self._is_continued and self._continue_with(status["state"]):
            return
        self._set_status(status, task.get("metadata"))

    def _continue_with(self, state: str) -> bool:
        """Leaves the content so far to earlier turns. True if the task is still as the question left it: the next event begins the turn."""
        self._is_continued = False
        self._texts.end_all()
        self._files.end_all()
        self._changes[:] = [kind for kind in self._changes if kind == "task"]
        if _is_in_progress(state):
            self._begin_turn()
        if state in INTERRUPTED_STATES:
            self._state = state
        return state in INTERRUPTED_STATES

    def _message(self, message: Json) -> None:
        self._begin(message.get("taskId"), message.get("contextId"))
        label = _label_of(message["messageId"], "answer", message)
        self._texts.update(label, self._turn, text_of(message["parts"]), is_replacement=True)
        self._texts.end(message["messageId"])
        self._set_state("TASK_STATE_COMPLETED")

    def _status_update(self, update: Json) -> None:
        self._begin(update["taskId"], update["contextId"])
        if _is_in_progress(update["status"]["state"]) and self._state in INTERRUPTED_STATES:
            self._begin_turn()
        self._set_status(update["status"], update.get("metadata"))

    def _artifact_update(self, update: Json) -> None:
        self._begin(update["taskId"], update["contextId"])
        if self._state in INTERRUPTED_STATES:
            self._begin_turn()
            self._set_state("TASK_STATE_WORKING")
        self._artifact(update["artifact"], append=update.get("append", False), last_chunk=update.get("lastChunk", False))

    def _begin(self, task_id: str | None, context_id: str | None) -> None:
        if self._context_id is None:
            self._context_id = context_id
        if task_id is None or self._task_id is not None:
            return
        self._task_id = task_id
        self._changed("task")

    def _begin_turn(self) -> None:
        self._turn += 1
        self._question = None
        self._failure = None
        self._texts.begin_turn()
        self._changed("turn")

    def _artifact(self, artifact: Json, *, is_snapshot: bool = False, append: bool = False, last_chunk: bool = False) -> None:
        artifact_id = artifact["artifactId"]
        known = self._roles.get(artifact_id)
        role = known
        if role is None:
            role = self._roles[artifact_id] = self._role_of(artifact)
        parts = artifact.get("parts", [])
        if role == "call-start":
            self._tools.start(artifact, self._turn)
        elif role == "call-end":
            self._tools.end(artifact, self._turn)
        elif role == "progress":
            self._is_progress_of_status = False
            self._set_progress(text_of(parts).strip(_SPACE))
        else:
            if role == "result":
                self._result(artifact, is_snapshot=is_snapshot, append=append, last_chunk=last_chunk)
            elif role != "file":
                self._text(artifact, role, is_snapshot=is_snapshot, append=append, last_chunk=last_chunk)
            beside = parts if role == "file" else [part for part in parts if not _is_plain(part)]
            if is_snapshot:
                self._files.snapshot(artifact, self._turn, beside)
            else:
                has_beginning = known is not None or not append
                self._files.update(artifact, self._turn, beside, is_replacement=not append, has_beginning=has_beginning)
            if last_chunk:
                self._files.end(artifact_id)

    def _role_of(self, artifact: Json) -> str:
        kind = artifact_kind(artifact)
        self._names_answer = self._names_answer or kind in ("answer", "plan")
        if kind == "answer":
            return "text"
        if kind is not None:
            return kind
        return "file" if self._names_answer and artifact.get("name", "") != "" else "text"

    def _text(self, artifact: Json, role: str, *, is_snapshot: bool, append: bool, last_chunk: bool) -> None:
        label = _label_of(artifact["artifactId"], "plan" if role == "plan" else "answer", artifact)
        text = _plain_text(artifact)
        if label.id not in self._texts:
            if text == "":
                return
            # If a whole answer precedes this text in a snapshot, it belongs to the texts before it.
            self._reconcile_all()
        # The texts may already have this id, because a whole answer keeps missing text under its own id.
        if is_snapshot:
            self._texts.snapshot(label, self._turn, text)
        else:
            self._texts.update(label, self._turn, text, is_replacement=not append)
        if last_chunk:
            self._texts.end(label.id)

    def _result(self, artifact: Json, *, is_snapshot: bool, append: bool, last_chunk: bool) -> None:
        artifact_id = artifact["artifactId"]
        known = self._results.get(artifact_id)
        # The snapshot after a gap repeats a whole answer that has already been compared.
        if is_snapshot and known is not None and known[1] == "":
            return
        before = known[1] if append and known is not None else ""
        self._results[artifact_id] = (_label_of(artifact_id, "answer", artifact), before + _plain_text(artifact))
        if last_chunk:
            self._reconcile(artifact_id)

    def _reconcile_all(self) -> None:
        for artifact_id in self._results:
            self._reconcile(artifact_id)

    def _reconcile(self, artifact_id: str) -> None:
        label, text = self._results[artifact_id]
        if text == "":
            return
        self._texts.reconcile(label, self._turn, text)
        self._results[artifact_id] = (label, "")

    def _set_status(self, status: Json, metadata: Json | None) -> None:
        state = status["state"]
        message = status.get("message")
        if metadata is not None:
            self._metadata = {**(self._metadata or {}), **metadata}
            self._set_usage(metadata.get("usage"))
        text = "" if message is None else text_of(message["parts"])
        if _is_in_progress(state):
            if text != "" or self._is_progress_of_status:
                self._set_progress(text.strip(_SPACE))
            self._is_progress_of_status = text != ""
        else:
            self._complete_content()
            self._progress = None
            self._question = None
        if state in INTERRUPTED_STATES:
            self._ask(state, text, message)
        if state in TERMINAL_STATES:
            self._tools.end_all()
        if state == "TASK_STATE_COMPLETED" and message is not None:
            self._last_message(message, text)
        has_failed = state in TERMINAL_STATES and state != "TASK_STATE_COMPLETED"
        self._failure = _failure_reason(text, metadata if metadata is not None else self._metadata) if has_failed else None
        self._set_state(state)

    def _ask(self, state: str, text: str, message: Json | None) -> None:
        self._question = ViewQuestion("auth" if state == "TASK_STATE_AUTH_REQUIRED" else "input", text, message)
        asked = None if message is None else message["messageId"]
        # The snapshot after a gap repeats the question.
        is_repeated = self._state in INTERRUPTED_STATES and self._asked == asked
        self._asked = asked
        if not is_repeated:
            self._changed("question")

    def _complete_content(self) -> None:
        """The turn has ended: completes the texts and files, including those whose last chunk is missing."""
        self._reconcile_all()
        self._texts.end_all()
        self._files.end_all()

    def _last_message(self, message: Json, text: str) -> None:
        """Some agents answer only in the message of their last status, and many repeat there what they have streamed."""
        message_id = message["messageId"]
        if text == "" or message_id in self._texts or self._texts.answer().endswith(text):
            return
        self._texts.update(_label_of(message_id, "answer", message), self._turn, text, is_replacement=True)
        self._texts.end(message_id)

    def _set_progress(self, line: str) -> None:
        if (self._progress or "") == line:
            return
        self._progress = line or None
        self._changed("progress")

    def _set_usage(self, value: Any) -> None:
        if not isinstance(value, dict):
            return
        numbers = {
            name: number for name, number in value.items() if isinstance(number, (int, float)) and not isinstance(number, bool)
        }
        if not numbers or self._usage == numbers:
            return
        self._usage = numbers
        self._changed("usage")

    def _set_state(self, state: str) -> None:
        if state == self._state and self._has_state:
            return
        self._has_state = True
        self._state = state
        self._changed("state")


def _is_in_progress(state: str) -> bool:
    """The task has not ended and waits for no client."""
    return state not in TERMINAL_STATES and state not in INTERRUPTED_STATES


def _failure_reason(text: str, metadata: Json | None) -> str | None:
    """The message of the status, otherwise the reason that Hopline keeps in its metadata."""
    if text.strip(_SPACE) != "":
        return text.strip(_SPACE)
    reason = (metadata or {}).get("reason")
    return reason if isinstance(reason, str) and reason != "" else None


def _is_plain(part: Json) -> bool:
    """Text of the answer. A text with a file name or of another type, such as HTML, is a file."""
    return "text" in part and "filename" not in part and _PLAIN.match(part.get("mediaType", "text/plain")) is not None


def _plain_text(artifact: Json) -> str:
    return text_of(part for part in artifact.get("parts", ()) if _is_plain(part))


def _label_of(text_id: str, channel: Channel, source: Json) -> TextLabel:
    metadata = source.get("metadata") or {}
    call_id = metadata.get("toolCallId")
    return TextLabel(text_id, channel, agent_of(source), call_id if isinstance(call_id, str) else None)
