"""An agent kit over the official A2A SDK: `pip install hopline[agent]`."""

from .agent_events import (
    AgentEvent,
    ApprovalQuestion,
    Artifact,
    Failure,
    Notice,
    Question,
    ToolEnd,
    ToolStart,
    artifact,
    failed,
    needs_approval,
    needs_input,
    notice,
    tool_end,
    tool_start,
)
from .agent_server import agent_app, agent_card
from .define_agent import Agent, Approval, Turn
from .play_turn import PlayedTurn, play_turn
from .recorded_stream import RecordedToken, RecordingError, read_stream, recorded_agent, write_stream
from .stored_steps import PlayedStep, StepError, StepFailed
from .tool_calls import ToolError

__all__ = [
    "Agent",
    "AgentEvent",
    "Approval",
    "ApprovalQuestion",
    "Artifact",
    "Failure",
    "Notice",
    "PlayedStep",
    "PlayedTurn",
    "Question",
    "RecordedToken",
    "RecordingError",
    "StepError",
    "StepFailed",
    "ToolEnd",
    "ToolError",
    "ToolStart",
    "Turn",
    "agent_app",
    "agent_card",
    "artifact",
    "failed",
    "needs_approval",
    "needs_input",
    "notice",
    "play_turn",
    "read_stream",
    "recorded_agent",
    "tool_end",
    "tool_start",
    "write_stream",
]
