"""An A2A 1.0 client that resumes interrupted streams."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, List, TypeVar

import httpx

from .a2a_events import decode_task
from .client_view import ClientView, Json
from .errors import A2AError, FailedTry, NoAnswerError, QuestionAsked, not_a2a
from .http_transport import Headers, HeadersFunction, HttpTransport
from .limits import ClientLimits, RetryLimits
from .resuming_stream import Begin, resuming_stream
from .stream_position import BEGINNING, StreamGap, StreamItem
from .tries import Tries
from .view_fold import ViewFold

_T = TypeVar("_T")

Outgoing = str | Mapping[str, Any]
"""A text, or the members of an A2A message; missing ids are created."""


@dataclass(frozen=True)
class Webhook:
    """A webhook that receives the events of a task, while the client is away, too."""

    url: str
    token: str | None = None
    """Sent back with every notification, so that the receiver knows it."""
    scheme: str | None = None
    """Scheme of the Authorization header of a notification, e.g. `Bearer`, with `credentials`."""
    credentials: str | None = None

    def to_json(self) -> Json:
        config: Json = {"url": self.url}
        if self.token is not None:
            config["token"] = self.token
        if self.scheme is not None:
            config["authentication"] = {"scheme": self.scheme}
            if self.credentials is not None:
                config["authentication"]["credentials"] = self.credentials
        return config


@dataclass(frozen=True)
class Answer:
    """The answer of a turn."""

    text: str
    view: ClientView
    """The task as a page shows it."""

    @property
    def state(self) -> str:
        return self.view.state

    @property
    def task_id(self) -> str | None:
        return self.view.task_id

    @property
    def context_id(self) -> str | None:
        """Pass it as `context` to continue the conversation."""
        return self.view.context_id


@dataclass(frozen=True)
class TaskPage:
    """One page of the caller's tasks, newest status first."""

    tasks: List[Json]
    next_page_token: str | None
    """None on the last page."""
    total_size: int | None
    """Number of tasks on all pages, if the server knows it."""


class Client:
    """
    Every call raises A2AError after the retries that RetryLimits allow. Leaving a loop closes its connection; the task continues, and `cancel`
    ends it. Use the client in one event loop, as a context manager or with `aclose`.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Headers | HeadersFunction | None = None,
        limits: ClientLimits | None = None,
        retry: RetryLimits | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        """
        `url`: the JSON-RPC endpoint. `headers`: sent with every request, e.g. `{"authorization": "Bearer …"}`. A function, or an async one, is called
        with None before each request, so that a token can be renewed, and with the error when the server has refused the headers: if it then returns
        other ones, the request is sent again. `http`: a client of yours, with its proxies and certificates, which `aclose` leaves open.
        """
        self._http = http or httpx.AsyncClient(limits=httpx.Limits(max_connections=None))
        self._owns_http = http is None
        self._transport = HttpTransport(self._http, url, headers or {}, limits or ClientLimits())
        self._retry = retry or RetryLimits()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        if self._owns_http:
            await self._http.aclose()

    async def ask(
        self,
        question: Outgoing,
        *,
        agent: str | None = None,
        context: str | None = None,
        push: Webhook | None = None,
        on_view: Callable[[ClientView], object] | None = None,
    ) -> Answer:
        """
        Sends a message and waits for its answer. `push` receives the events of its task. `on_view`, a function or an async one, receives each view while the answer arrives. Raises QuestionAsked when the task asks
        a question, and NoAnswerError when it ends otherwise.
        """
        last: ClientView | None = None
        async with aclosing(self.watch(question=question, agent=agent, context=context, push=push)) as views:
            async for view in views:
                last = view
                shown = None if on_view is None else on_view(view)
                if isawaitable(shown):
                    await shown
        if last is None:
            raise A2AError("INVALID_AGENT_RESPONSE", "the stream of the answer has no event")
        if last.question is not None:
            raise QuestionAsked(last)
        if last.state != "TASK_STATE_COMPLETED":
            raise NoAnswerError(last)
        return Answer(last.answer, last)

    async def answer(
        self, task: str | Json, answer: str | Sequence[Json], *, on_view: Callable[[ClientView], object] | None = None
    ) -> Answer:
        """
        Answers the question of a task with a text or with parts, such as those of `approval_response`, and waits for the end of the turn as `ask`
        does.
        """
        parts = [{"text": answer}] if isinstance(answer, str) else list(answer)
        return await self.ask({"taskId": _id_of(task), "parts": parts}, on_view=on_view)

    async def watch(
        self,
        task: str | Json | None = None,
        *,
        question: Outgoing | None = None,
        agent: str | None = None,
        context: str | None = None,
        push: Webhook | None = None,
    ) -> AsyncGenerator[ClientView, None]:
        """
        Yields a view after each event that changes it. A task, by id or as `get` gives it, is watched from its beginning to its end, also
        when it waits for an answer in between; a `question` is sent, and watched to the end of its turn.
        """
        begin = _begin(task, BEGINNING, question, agent, context, push)
        continues = begin.message is not None and "taskId" in begin.message["message"]
        fold = ViewFold(continues=continues)
        try:
            async with aclosing(self._follow(begin)) as items:
                async for item in items:
                    if fold.add_gap() if isinstance(item, StreamGap) else fold.add(item.event, item.cursor):
                        yield fold.view
        except A2AError as error:
            # A server without cursors refuses to stream a task that has ended ([A2A 1.0] 3.1.6).
            if task is None or error.code != "UNSUPPORTED_OPERATION":
                raise
            fold.add({"task": await self.get(task)})
            yield fold.view

    async def events(
        self,
        task: str | Json | None = None,
        *,
        cursor: str | None = None,
        question: Outgoing | None = None,
        agent: str | None = None,
        context: str | None = None,
        push: Webhook | None = None,
    ) -> AsyncGenerator[StreamItem, None]:
        """
        Yields the events of a task, each once, until it ends. `cursor`: that of the last event received, or BEGINNING; without one the
        stream starts with the current task, and a task that has ended is rejected.
        """
        async with aclosing(self._follow(_begin(task, cursor, question, agent, context, push))) as items:
            async for item in items:
                yield item

    async def get(self, task: str | Json, *, history_length: int | None = None) -> Json:
        """The current task. Raises TASK_NOT_FOUND for an unknown task and for a task of another caller."""
        params = {"id": _id_of(task)} if history_length is None else {"id": _id_of(task), "historyLength": history_length}
        return await self._with_retries(lambda: self._task("GetTask", params))

    async def cancel(self, task: str | Json) -> Json:
        """The task, which is canceled unless its agent takes longer to stop than the server waits."""
        params = {"id": _id_of(task)}
        tries = 0

        async def once() -> Json:
            nonlocal tries
            tries += 1
            try:
                return await self._task("CancelTask", params)
            except FailedTry as failed:
                if tries == 1 or failed.error.code != "TASK_NOT_CANCELABLE":
                    raise
                # An earlier try, whose response was lost, may have canceled the task.
                found = await self._task("GetTask", params)
                if found["status"]["state"] != "TASK_STATE_CANCELED":
                    raise
                return found

        return await self._with_retries(once)

    async def list(
        self,
        *,
        context: str | None = None,
        state: str | None = None,
        page_size: int | None = None,
        page_token: str | None = None,
        include_artifacts: bool | None = None,
        text: str | None = None,
        agent: str | None = None,
        min_duration_ms: int | None = None,
    ) -> TaskPage:
        """
        One page of the caller's tasks. `page_size`: 1 to 100. `page_token`: `next_page_token` of the previous page. `text`: only tasks with this
        text in a question, in the beginning of the answer or in the reason of a failure. `agent`: only tasks in which this agent worked.
        `min_duration_ms`: only tasks that took at least this long. Servers other than Hopline ignore the last three.
        """
        given = {
            "contextId": context,
            "status": state,
            "pageSize": page_size,
            "pageToken": page_token,
            "includeArtifacts": include_artifacts,
            "text": text,
            "agent": agent,
            "minDurationMs": min_duration_ms,
        }
        params = {name: value for name, value in given.items() if value is not None}

        async def once() -> TaskPage:
            return _page_of(await self._transport.call("ListTasks", params))

        return await self._with_retries(once)

    def _follow(self, begin: Begin) -> AsyncGenerator[StreamItem, None]:
        def get(task_id: str) -> Awaitable[Json]:
            return self._task("GetTask", {"id": task_id, "historyLength": 0})

        return resuming_stream(self._transport, begin, self._retry, get)

    async def _task(self, method: str, params: Json) -> Json:
        return _task_of(await self._transport.call(method, params))

    async def _with_retries(self, once: Callable[[], Awaitable[_T]]) -> _T:
        tries = Tries(self._retry)
        while True:
            try:
                return await once()
            except FailedTry as failed:
                await tries.pause(failed)


def _begin(
    task: str | Json | None,
    cursor: str | None,
    question: Outgoing | None,
    agent: str | None,
    context: str | None,
    push: Webhook | None,
) -> Begin:
    if (task is None) == (question is None):
        raise ValueError("pass either a task or a question")
    if question is None:
        if agent is not None or context is not None or push is not None:
            raise ValueError("agent, context and push belong to a question")
        return Begin(task_id=_id_of(task or ""), cursor=cursor)
    configuration: Json = {} if push is None else {"taskPushNotificationConfig": push.to_json()}
    params: Json = {"message": _message_of(question, context), "configuration": configuration}
    if agent is not None:
        params["metadata"] = {"agent": agent}
    return Begin(message=params)


def _message_of(question: Outgoing, context: str | None) -> Json:
    """
    The message in the form that is sent, on retries too. The server recognizes a duplicate by messageId and contextId, so missing ones are
    created here. A message of an existing task has the task's context.
    """
    message: Json = {"parts": [{"text": question}]} if isinstance(question, str) else dict(question)
    message.setdefault("messageId", str(uuid.uuid4()))
    message["role"] = "ROLE_USER"
    if context is not None:
        message["contextId"] = context
    elif "taskId" not in message:
        message.setdefault("contextId", str(uuid.uuid4()))
    return message


def _id_of(task: str | Json) -> str:
    task_id: str = task if isinstance(task, str) else task["id"]
    return task_id


def _task_of(result: Any) -> Json:
    task = decode_task(result)
    if task is None:
        raise not_a2a("the response is not a task")
    return task


def _page_of(page: Any) -> TaskPage:
    if not isinstance(page, dict) or not isinstance(page.get("tasks"), list):
        raise not_a2a("the response is not a page of tasks")
    token = page.get("nextPageToken")
    size = page.get("totalSize")
    return TaskPage(
        tasks=[_task_of(task) for task in page["tasks"]],
        next_page_token=token if isinstance(token, str) and token != "" else None,
        total_size=size if isinstance(size, int) else None,
    )
