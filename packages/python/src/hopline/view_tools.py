"""The calls of a task, from the notices of their starts and ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .a2a_events import text_of
from .client_view import Json, Outcome, ViewTool


class ViewTools:
    """Calls by id. The ids of notices are kept, so that a snapshot does not repeat them."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._tools: dict[str, ViewTool] = {}
        self._notices: dict[str, str] = {}
        self._changed = changed
        self._shown: tuple[ViewTool, ...] | None = None

    def show(self) -> tuple[ViewTool, ...]:
        if self._shown is None:
            self._shown = tuple(self._tools.values())
        return self._shown

    def start(self, artifact: Json, turn: int) -> None:
        artifact_id = artifact["artifactId"]
        metadata = artifact.get("metadata") or {}
        shown = self._tools.get(self._notices.get(artifact_id, ""))
        if shown is not None:
            self._set_arguments(shown, metadata.get("arguments"))
            return
        given = metadata.get("toolCallId")
        call_id = given if isinstance(given, str) else artifact_id
        self._notices[artifact_id] = call_id
        known = self._tools.get(call_id)
        # A later attempt of the agent shows a call again.
        self._open(call_id, artifact, known.turn if known else turn, text_of(artifact.get("parts", ())))

    def end(self, artifact: Json, turn: int) -> None:
        artifact_id = artifact["artifactId"]
        metadata = artifact.get("metadata") or {}
        if artifact_id in self._notices:
            return
        call_id = self._call_of(artifact)
        self._notices[artifact_id] = call_id
        if call_id not in self._tools:
            # A gap may have removed the start.
            self._open(call_id, artifact, turn, "")
        outcome: Outcome = (
            "failed" if metadata.get("failed") is True else "waiting" if metadata.get("waiting") is True else "completed"
        )
        tool = self._tools[call_id]
        self._end(replace(tool, outcome=outcome, result=metadata.get("result"), notice=text_of(artifact.get("parts", ()))))

    def end_all(self) -> None:
        """The turn has ended: no end of an open call follows."""
        for tool in list(self._tools.values()):
            if tool.outcome == "running":
                self._end(replace(tool, outcome="unknown"))

    def _open(self, call_id: str, artifact: Json, turn: int, notice: str) -> None:
        tool = ViewTool(
            id=call_id,
            tool=_tool_of(artifact),
            agent=agent_of(artifact),
            turn=turn,
            outcome="running",
            arguments=None,
            result=None,
            notice=notice,
        )
        self._set(tool)
        self._changed("tool-started")
        self._set_arguments(tool, (artifact.get("metadata") or {}).get("arguments"))

    def _call_of(self, artifact: Json) -> str:
        """Servers whose notices have no ids end the oldest open call of the tool, or of any tool."""
        metadata = artifact.get("metadata") or {}
        given = metadata.get("toolCallId")
        if isinstance(given, str):
            return given
        running = [tool for tool in self._tools.values() if tool.outcome == "running"]
        same = [tool for tool in running if tool.tool == metadata.get("tool")]
        found = (same or running)[:1]
        artifact_id: str = artifact["artifactId"]
        return found[0].id if found else artifact_id

    def _set_arguments(self, shown: ViewTool, value: Any) -> None:
        if value is None or shown.arguments is not None:
            return
        self._set(replace(shown, arguments=value))
        self._changed("tool-arguments")

    def _end(self, tool: ViewTool) -> None:
        self._set(tool)
        self._changed("tool-ended")

    def _set(self, tool: ViewTool) -> None:
        self._tools[tool.id] = tool
        self._shown = None


def _tool_of(artifact: Json) -> str:
    tool = (artifact.get("metadata") or {}).get("tool")
    if isinstance(tool, str):
        return tool
    name: str = artifact.get("name", "tool")
    return name


def agent_of(artifact: Json) -> str | None:
    """The agent that an artifact or message names as its writer."""
    agent = (artifact.get("metadata") or {}).get("sourceAgent")
    return agent if isinstance(agent, str) else None
