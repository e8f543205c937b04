"""A client of A2A agents behind Hopline, and of other A2A 1.0 servers."""

from .approval import approval_response
from .client import Answer, Client, Outgoing, TaskPage, Webhook
from .client_view import ClientView, ViewFile, ViewQuestion, ViewText, ViewTool
from .errors import A2A_ERRORS, A2AError, NoAnswerError, QuestionAsked
from .limits import ClientLimits, RetryLimits
from .stream_position import BEGINNING, StreamEvent, StreamGap, StreamItem
from .view_fold import ViewFold

__all__ = [
    "A2A_ERRORS",
    "BEGINNING",
    "A2AError",
    "Answer",
    "Client",
    "ClientLimits",
    "ClientView",
    "NoAnswerError",
    "Outgoing",
    "QuestionAsked",
    "RetryLimits",
    "StreamEvent",
    "StreamGap",
    "StreamItem",
    "TaskPage",
    "ViewFile",
    "ViewFold",
    "ViewQuestion",
    "ViewText",
    "ViewTool",
    "Webhook",
    "approval_response",
]
