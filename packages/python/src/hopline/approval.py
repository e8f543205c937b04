"""Approvals of tool calls in the form of packages/a2a/src/approval.ts: data parts with `approvalRequest` and `approvalResponse`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]

# Answers in plain text that approve, without case and the points or exclamation marks at their end.
_APPROVING_TEXTS = ("yes", "y", "ok", "approve", "approved")


def approval_response(request: Mapping[str, Any], approved: bool, reason: str | None = None) -> list[Json]:
    """
    The parts of a message that approves or refuses the call of a question: `question.approval` of a view. The text has the same meaning, for
    people, and for agents that read no data.
    """
    if not isinstance(approved, bool):
        raise TypeError(f"approved must be True or False, not {approved!r}")
    reason = (reason or "").strip()
    response = {"callId": request["callId"], "approved": approved, **({"reason": reason} if reason else {})}
    text = "Approved" if approved else reason or "Refused"
    return [{"text": text}, {"data": {"approvalResponse": response}}]


def approval_question(tool: str, arguments: Json) -> str:
    """The question for people and for clients that know nothing of approvals. It shows every argument, because these are what they approve."""
    return f"Run {tool} with {json.dumps(arguments, ensure_ascii=False, separators=(',', ':'))}?"


def read_approval_response(parts: Sequence[Json], call_id: str) -> tuple[bool, str | None]:
    """
    Whether the parts of an answer approve the call, and the reason: the response in them or, without one, their text. Only a response with
    `approved: true` for this call or an approving text approves. Everything else refuses.
    """
    data = [part.get("data") for part in parts]
    responses = [one["approvalResponse"] for one in data if isinstance(one, dict) and "approvalResponse" in one]
    if not responses:
        return _decision_in_text(parts)
    matching = [one for one in responses if isinstance(one, dict) and one.get("callId") == call_id]
    if not matching:
        return False, f"The response names a different call; {call_id} is waiting."
    if all(one.get("approved") is True for one in matching):
        return True, _text(matching[0].get("reason"))
    for one in matching:
        if one.get("approved") is False:
            return False, _text(one.get("reason"))
    return False, "The response has no boolean `approved`."


def _decision_in_text(parts: Sequence[Json]) -> tuple[bool, str | None]:
    words = "".join(part.get("text", "") for part in parts).strip()
    if words.lower().rstrip(".!") in _APPROVING_TEXTS:
        return True, None
    return False, _text(words)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value != "" else None
