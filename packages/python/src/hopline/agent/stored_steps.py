"""Steps of a turn. Hopline stores their results for the next attempt (packages/agent-a2a/STEPS-EXTENSION.md)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast
from uuid import uuid4

from a2a.types import TaskState

from ..errors import RestorableError
from .json_value import json_value
from .turn_updater import TurnUpdater

T = TypeVar("T")
Json = dict[str, Any]

STEPS_EXTENSION_URI = "https://hopline.dev/extensions/steps/v1"
ANSWER_STEP = "AnswerStep"

# Bounds of packages/task/src/limits.ts.
STEP_NAME_UNITS_MAX = 128
STEP_OUTCOME_BYTES_MAX = 128 * 1024
# How long a step waits for its answer: longer than a relay may take to store it.
ANSWER_SECONDS_MAX = 330.0

_ERROR_NAME_MAX = 128
_ERROR_MESSAGE_UNITS_MAX = 1024


class StepError(Exception):
    """A step that cannot be stored, or comes in another order than in an earlier attempt. It fails the turn."""


class StepFailed(RestorableError):
    """What the function of a step raised. Every attempt gets it in this form; in the attempt that ran the function its cause is the error."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name
        """The class of the error, such as `ValueError`."""
        self.message = message


class Steps(Protocol):
    """Stores the steps of a turn, one after the other."""

    async def begin(self, name: str) -> tuple[str, Json | None]:
        """The key of the step, and its outcome if an earlier attempt has stored it."""
        ...

    async def end(self, outcome: Json) -> None:
        """Returns when no later attempt can miss the outcome."""
        ...


async def run_step(steps: Steps, name: str, run: Callable[[str], Awaitable[T]]) -> T:
    """See `Turn.step`."""
    if not isinstance(name, str) or name == "" or _units(name) > STEP_NAME_UNITS_MAX:
        raise StepError(f"step {name!r}: its name must be a string of 1 to {STEP_NAME_UNITS_MAX} characters")
    key, stored = await steps.begin(name)
    cause: Exception | None = None
    if stored is None:
        try:
            outcome = {"value": _as_json(name, await run(key))}
        except StepError:
            raise
        except Exception as error:
            cause = error
            outcome = {"error": {"name": type(error).__name__[:_ERROR_NAME_MAX], "message": _cut(str(error))}}
        await steps.end(outcome)
        stored = outcome
    if "error" in stored:
        raise StepFailed(stored["error"]["name"], stored["error"]["message"]) from cause
    return cast("T", stored.get("value"))


class StepAnswers:
    """The requests of all turns of an agent that wait for an answer, by their ids, which only the client of the turn knows."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[str, asyncio.Future[Json]]] = {}

    def ask(self, task_id: str, request_id: str) -> asyncio.Future[Json]:
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = (task_id, answer)
        return answer

    def forget(self, request_id: str) -> None:
        _, answer = self._waiting.pop(request_id, (None, None))
        if answer is not None:
            # A step that outlives its turn waits no longer.
            answer.cancel()

    def take(self, params: object) -> bool:
        """Whether a step waits for this answer, or has it already."""
        if not isinstance(params, dict) or not isinstance(params.get("id"), str):
            return False
        task_id, answer = self._waiting.get(params["id"], (None, None))
        if answer is None or task_id != params.get("taskId"):
            return False
        if not answer.done():
            answer.set_result(params)
        return True


class StepsInOrder:
    """Steps follow one another. `names` are those that the turn has come to."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._open: str | None = None

    def begin(self, name: str) -> None:
        if self._open is not None:
            raise StepError(
                f"step {name} begins inside step {self._open}, or after that was canceled; "
                "run steps one after another. Put a time limit inside the function of the step"
            )
        self.names.append(name)
        self._open = name

    def end(self) -> None:
        self._open = None


class RemoteSteps:
    """Asks the client of the turn to store its steps: by an event of the task, which the client answers with a request."""

    def __init__(self, updater: TurnUpdater, answers: StepAnswers) -> None:
        self._updater = updater
        self._answers = answers
        self._order = StepsInOrder()
        self._newest: str | None = None

    async def begin(self, name: str) -> tuple[str, Json | None]:
        self._order.begin(name)
        answer = await self._ask({})
        stored: Json | None = answer.get("outcome")
        if stored is not None:
            self._order.end()
        return str(answer.get("key", "")), stored

    async def end(self, outcome: Json) -> None:
        await self._ask({"outcome": json.dumps(outcome, ensure_ascii=False)})
        self._order.end()

    def close(self) -> Json:
        """The turn is over. Returns the metadata of its end, which takes the newest request out of the task."""
        self._forget()
        return {} if self._newest is None else {STEPS_EXTENSION_URI: None}

    def _forget(self) -> None:
        if self._newest is not None:
            self._answers.forget(self._newest)

    async def _ask(self, more: Json) -> Json:
        self._updater.assert_open()
        # The answer to the request before may be repeated until this one is seen.
        self._forget()
        self._newest = str(uuid4())
        answering = self._answers.ask(self._updater.task_id, self._newest)
        request = {"id": self._newest, "steps": list(self._order.names), **more}
        await self._updater.update_status(TaskState.TASK_STATE_WORKING, metadata={STEPS_EXTENSION_URI: request})
        try:
            answer = await asyncio.wait_for(answering, ANSWER_SECONDS_MAX)
        except asyncio.TimeoutError:
            raise StepError(f"step {self._order.names[-1]}: its client has not stored it") from None
        if "error" in answer:
            raise StepError(str(answer["error"]))
        return answer


@dataclass(frozen=True)
class PlayedStep:
    """A step of a played turn that is stored."""

    name: str
    result: Any = None
    error: str | None = None
    """The class and the message of what it raised."""
    is_reused: bool = False
    """It comes from an earlier attempt, and has not run."""


class PlayedSteps:
    """Steps in memory, for `play_turn`."""

    def __init__(self, earlier: Sequence[PlayedStep]) -> None:
        self.played: list[PlayedStep] = []
        self._earlier = list(earlier)
        self._order = StepsInOrder()

    async def begin(self, name: str) -> tuple[str, Json | None]:
        self._order.begin(name)
        names = self._order.names
        key = f"{name}-{names.count(name)}"
        if not self._earlier:
            return key, None
        stored = self._earlier.pop(0)
        if stored.name != name:
            raise StepError(f"step {name} runs where an earlier attempt stored step {stored.name}: {_SAME_ORDER}")
        self._order.end()
        self.played.append(PlayedStep(name, stored.result, stored.error, is_reused=True))
        if stored.error is None:
            return key, {"value": stored.result}
        error, _, message = stored.error.partition(": ")
        return key, {"error": {"name": error, "message": message}}

    async def end(self, outcome: Json) -> None:
        self._order.end()
        error = outcome.get("error")
        shown = None if error is None else f"{error['name']}: {error['message']}"
        self.played.append(PlayedStep(self._order.names[-1], outcome.get("value"), shown))

    def kept(self, *, is_retried: bool) -> tuple[PlayedStep, ...]:
        """The steps that the next attempt gets. Those that failed last in a turn that is repeated are not among them: they run again."""
        kept = list(self.played)
        while is_retried and kept and kept[-1].error is not None:
            kept.pop()
        return tuple(kept)


_SAME_ORDER = "a turn must make the same steps in the same order in each attempt"


def _as_json(name: str, value: Any) -> Any:
    try:
        whole, size = json_value(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise StepError(f"step {name}: its result cannot be written as JSON: {error}") from None
    if size > STEP_OUTCOME_BYTES_MAX:
        raise StepError(f"step {name}: its result has {size} bytes of JSON, more than {STEP_OUTCOME_BYTES_MAX}")
    return whole


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _cut(text: str) -> str:
    shown = text.encode("utf-8", "replace").decode()[:_ERROR_MESSAGE_UNITS_MAX]
    while _units(shown) > _ERROR_MESSAGE_UNITS_MAX:
        shown = shown[:-1]
    return shown
