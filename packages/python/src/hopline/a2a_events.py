"""Events of A2A 1.0 as JSON objects, decoded from servers of any make."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .client_view import Json

TERMINAL_STATES = frozenset({"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"})
INTERRUPTED_STATES = frozenset({"TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"})
_STATES = TERMINAL_STATES | INTERRUPTED_STATES | {"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"}

# Names of artifacts in the built-in profiles, any of which a server below may use (packages/profiles).
_KINDS = {
    "response": "answer",
    "Stream Delta": "answer",
    "execution_plan_streaming": "plan",
    "execution_plan_update": "plan",
    "agent_execution_plan": "plan",
    "streaming_result": "answer",
    "partial_result": "result",
    "final_result": "result",
    "tool_notification_start": "call-start",
    "tool_notification_end": "call-end",
    "tool_notification_complete": "call-end",
    "progress": "progress",
}
_KIND_NAMES = frozenset(_KINDS.values())


def artifact_kind(artifact: Json) -> str | None:
    """By the name of the artifact, otherwise by the kind that a custom profile recorded on it."""
    kind = _KINDS.get(artifact.get("name", ""))
    if kind is not None:
        return kind
    recorded = (artifact.get("metadata") or {}).get("artifactKind")
    return recorded if isinstance(recorded, str) and recorded in _KIND_NAMES else None


def text_of(parts: Iterable[Json]) -> str:
    return "".join(part.get("text", "") for part in parts)


def state_of(event: Json) -> str | None:
    """The state that an event sets."""
    update = event.get("task") or event.get("statusUpdate")
    state: str | None = update["status"]["state"] if update else None
    return state


def task_id_of(event: Json) -> str | None:
    if "task" in event:
        return event["task"]["id"] or None
    (update,) = event.values()
    return update.get("taskId") or None


def decode_event(result: Any) -> Json | None:
    """
    One StreamResponse with exactly one member; None for an event of an unknown kind or state. Absent, empty and mistyped members are left out,
    because agents in the field omit contextId, lastChunk and message.
    """
    if not isinstance(result, dict):
        return None
    if isinstance(result.get("task"), dict):
        task = decode_task(result["task"])
        return None if task is None else {"task": task}
    if isinstance(result.get("message"), dict):
        return {"message": _message(result["message"])}
    if isinstance(result.get("statusUpdate"), dict):
        value = result["statusUpdate"]
        status = _status(value.get("status"))
        return None if status is None else {"statusUpdate": {**_envelope(value), "status": status}}
    value = result.get("artifactUpdate")
    if not isinstance(value, dict) or not isinstance(value.get("artifact"), dict):
        return None
    flags = {"append": value.get("append") is True, "lastChunk": value.get("lastChunk") is True}
    return {"artifactUpdate": {**_envelope(value), "artifact": _artifact(value["artifact"]), **flags}}


def decode_task(value: Any) -> Json | None:
    if not isinstance(value, dict):
        return None
    status = _status(value.get("status"))
    if status is None:
        return None
    task: Json = {"id": _text(value.get("id")) or "", "contextId": _text(value.get("contextId")) or "", "status": status}
    for name, decode in (("artifacts", _artifact), ("history", _message)):
        if isinstance(value.get(name), list):
            task[name] = [decode(one) for one in value[name] if isinstance(one, dict)]
    return _with(task, value, metadata=_object)


def _envelope(value: Json) -> Json:
    ids: Json = {"taskId": _text(value.get("taskId")) or "", "contextId": _text(value.get("contextId")) or ""}
    return _with(ids, value, metadata=_object)


def _status(value: Any) -> Json | None:
    if not isinstance(value, dict) or not isinstance(value.get("state"), str) or value["state"] not in _STATES:
        return None
    status: Json = {"state": value["state"]}
    if _object(value.get("message")):
        status["message"] = _message(value["message"])
    return _with(status, value, timestamp=_text)


def _message(value: Json) -> Json:
    message: Json = {
        "messageId": _text(value.get("messageId")) or "",
        "role": "ROLE_USER" if value.get("role") == "ROLE_USER" else "ROLE_AGENT",
        "parts": _parts(value.get("parts")),
    }
    return _with(message, value, contextId=_text, taskId=_text, metadata=_object, extensions=_texts, referenceTaskIds=_texts)


def _artifact(value: Json) -> Json:
    artifact: Json = {"artifactId": _text(value.get("artifactId")) or "", "parts": _parts(value.get("parts"))}
    return _with(artifact, value, name=_text, description=_text, metadata=_object, extensions=_texts)


def _parts(value: Any) -> list[Json]:
    return [_part(part) for part in value] if isinstance(value, list) else []


def _part(value: Any) -> Json:
    """A value that is not a part is kept as data."""
    if not isinstance(value, dict):
        return {"data": value}
    for name in ("text", "raw", "url"):
        if isinstance(value.get(name), str):
            return _with({name: value[name]}, value, metadata=_object, filename=_text, mediaType=_text)
    if "data" not in value:
        return {"data": value}
    return _with({"data": value["data"]}, value, metadata=_object, filename=_text, mediaType=_text)


def _with(target: Json, value: Json, **readers: Any) -> Json:
    for name, read in readers.items():
        found = read(value.get(name))
        if found is not None:
            target[name] = found
    return target


def _text(value: Any) -> str | None:
    """ProtoJSON writes an absent string as ''."""
    return value if isinstance(value, str) and value != "" else None


def _object(value: Any) -> Json | None:
    return value if isinstance(value, dict) and value else None


def _texts(value: Any) -> list[str] | None:
    found = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
    return found or None
