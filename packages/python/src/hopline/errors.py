"""The closed catalogue of errors of packages/a2a, which a test compares with this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from .client_view import ClientView, Json


@dataclass(frozen=True)
class ErrorRow:
    """One row of the catalogue."""

    rpc: int
    """JSON-RPC error number ([A2A 1.0] 5.4). Several codes share -32600 and -32603."""
    retryable: bool
    """Whether the same request may succeed later, unchanged."""
    text: str


A2A_ERRORS: Final[dict[str, ErrorRow]] = {
    "PARSE_ERROR": ErrorRow(-32700, False, "Invalid JSON"),
    "INVALID_REQUEST": ErrorRow(-32600, False, "Not a JSON-RPC 2.0 request"),
    "METHOD_NOT_FOUND": ErrorRow(-32601, False, "Method not found"),
    "INVALID_PARAMS": ErrorRow(-32602, False, "Invalid params"),
    "INTERNAL_ERROR": ErrorRow(-32603, True, "Internal error"),
    "TASK_NOT_FOUND": ErrorRow(-32001, False, "Task not found"),
    "TASK_NOT_CANCELABLE": ErrorRow(-32002, False, "Task cannot be canceled: it has ended"),
    "PUSH_NOTIFICATION_NOT_SUPPORTED": ErrorRow(-32003, False, "Push notifications are not supported"),
    "UNSUPPORTED_OPERATION": ErrorRow(-32004, False, "This operation is not supported"),
    "CONTENT_TYPE_NOT_SUPPORTED": ErrorRow(-32005, False, "Incompatible content types"),
    "INVALID_AGENT_RESPONSE": ErrorRow(-32006, True, "Invalid agent response"),
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": ErrorRow(-32007, False, "No extended agent card is configured"),
    "EXTENSION_SUPPORT_REQUIRED": ErrorRow(-32008, False, "The client must support a required extension"),
    "VERSION_NOT_SUPPORTED": ErrorRow(-32009, False, "This A2A version is not supported"),
    "TASK_GENERATION_MISMATCH": ErrorRow(-32010, False, "Task generation mismatch"),
    "UNAUTHENTICATED": ErrorRow(-32600, False, "Authentication required"),
    "PERMISSION_DENIED": ErrorRow(-32600, False, "Permission denied"),
    "REQUEST_TOO_LARGE": ErrorRow(-32600, False, "Request is too large"),
    "QUOTA_EXCEEDED": ErrorRow(-32603, True, "Quota exceeded"),
    "UNAVAILABLE": ErrorRow(-32603, True, "Temporarily unavailable"),
}


def _restored(kind: type[Exception], args: tuple[Any, ...], members: dict[str, Any]) -> Exception:
    error = kind.__new__(kind, *args)
    error.__dict__.update(members)
    return error


class RestorableError(Exception):
    """An error that may come from another process: pickle and copy would otherwise call its class with its text."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, self.__dict__)


class A2AError(RestorableError):
    """
    An error of the server or of the connection. `code` is a key of A2A_ERRORS, `retry_after_seconds` the delay that the server asks for, and
    `challenge` its `WWW-Authenticate`.
    """

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        retryable: bool | None = None,
        task_id: str | None = None,
        retry_after_seconds: float | None = None,
        challenge: str | None = None,
    ) -> None:
        row = A2A_ERRORS[code]
        super().__init__(row.text if detail == "" else f"{row.text}: {detail}")
        self.code = code
        self.rpc = row.rpc
        self.retryable = row.retryable if retryable is None else retryable
        self.task_id = task_id
        self.retry_after_seconds = retry_after_seconds
        self.challenge = challenge


class NoAnswerError(RestorableError):
    """The turn ended without an answer: the task failed, was rejected or was canceled. `view` is the task as it is."""

    def __init__(self, view: ClientView) -> None:
        self.view = view
        word = view.state.replace("TASK_STATE_", "").replace("_", "-").lower()
        detail = view.question.text if view.question is not None else view.failure or ""
        super().__init__(f"the task is {word}" + (f": {detail}" if detail else ""))


class QuestionAsked(NoAnswerError):
    """The task waits for the client. Call `answer(error.view.task_id, text)`."""


class FailedTry(Exception):
    """One failed try: the error for the caller if it was the last one, and the input for the next delay. Internal to this package."""

    def __init__(self, error: A2AError, *, delay_seconds: float = 0, reached: bool = True, status: int | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.delay_seconds = delay_seconds
        """Delay that the server requests."""
        self.reached = reached
        """True if the server responded; otherwise there may be no server at this address."""
        self.status = status


def not_a2a(detail: str, *, retryable: bool = False) -> FailedTry:
    return FailedTry(A2AError("INVALID_AGENT_RESPONSE", detail, retryable=retryable))


def error_of(
    error: Json,
    *,
    retryable_default: bool = False,
    retry_after_seconds: float | None = None,
    challenge: str | None = None,
) -> A2AError:
    """The `error` of a JSON-RPC response. Some numbers stand for several codes, of which `data` names one."""
    detail_of_data = _data_of(error.get("data", error.get("details")))
    code = _code_of(error.get("code"), detail_of_data.get("reason"))
    inner = detail_of_data.get("metadata")
    fields = inner if isinstance(inner, dict) else detail_of_data
    retryable = fields.get("retryable")
    task_id = fields.get("taskId")
    text = A2A_ERRORS[code].text
    message = error.get("message") if isinstance(error.get("message"), str) else ""
    detail = "" if message == text else str(message).removeprefix(f"{text}: ")
    return A2AError(
        code,
        detail,
        retryable=retryable_default if retryable is None else retryable in (True, "true"),
        task_id=task_id if isinstance(task_id, str) else None,
        retry_after_seconds=retry_after_seconds,
        challenge=challenge,
    )


def _code_of(number: Any, reason: Any) -> str:
    possible = [code for code, row in A2A_ERRORS.items() if row.rpc == number]
    if reason in possible or (not possible and isinstance(reason, str) and reason in A2A_ERRORS):
        return str(reason)
    return possible[0] if possible else "INTERNAL_ERROR"


def _data_of(data: Any) -> Json:
    """In 1.0 `data` is a list of typed details, of which the one with a reason is read; in 0.3 it is an object."""
    details = [one for one in (data if isinstance(data, list) else [data]) if isinstance(one, dict)]
    with_reason = [one for one in details if isinstance(one.get("reason"), str)]
    return (with_reason or details or [{}])[0]
