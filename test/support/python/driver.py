"""Answers requests of the tests, one JSON value a line: folds items, and calls a server with the Python client."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import hopline
from hopline.view_fold import ViewFold

# Retries in a test must not wait for seconds.
RETRY = hopline.RetryLimits(base_seconds=0.001, wait_seconds_max=0.002)


def fold(items: list[dict[str, Any]], continues: bool) -> dict[str, Any]:
    """The kinds of changes of each item, and the view after each."""
    one = ViewFold(continues=continues)
    steps = []
    for item in items:
        kinds = one.add_gap() if "gap" in item else one.add(item["event"], item.get("cursor"))
        steps.append({"kinds": kinds, "view": one.view.to_json()})
    return {"steps": steps}


async def watch(url: str, task: str) -> dict[str, Any]:
    async with hopline.Client(url, retry=RETRY) as client:
        return {"views": [view.to_json() async for view in client.watch(task)]}


async def ask(url: str, question: str, task: str | None) -> dict[str, Any]:
    """The answer, and the lengths of the answer while it arrived."""
    lengths: list[int] = []
    async with hopline.Client(url) as client:

        def show(view: hopline.ClientView) -> None:
            lengths.append(len(view.answer))
            # The test acts when it reads this line.
            print(json.dumps({"length": len(view.answer), "taskId": view.task_id}), flush=True)

        try:
            if task is None:
                answer = await client.ask(question, agent="counter", on_view=show)
            else:
                answer = await client.answer(task, question, on_view=show)
        except hopline.QuestionAsked as asked:
            return {"question": asked.view.to_json()}
        except hopline.NoAnswerError as failed:
            return {"failed": failed.view.to_json()}
        return {"text": answer.text, "state": answer.state, "taskId": answer.task_id, "lengths": lengths}


async def cancel(url: str, task: str) -> dict[str, Any]:
    async with hopline.Client(url) as client:
        canceled = await client.cancel(task)
        page = await client.list(page_size=5)
        unknown = None
        try:
            await client.get("no-such-task")
        except hopline.A2AError as error:
            unknown = [error.code, error.rpc]
        return {"state": canceled["status"]["state"], "listed": [one["id"] for one in page.tasks], "unknown": unknown}


def errors() -> dict[str, Any]:
    return {code: [row.rpc, row.retryable, row.text] for code, row in hopline.A2A_ERRORS.items()}


def main() -> None:
    calls = {"fold": fold, "watch": watch, "ask": ask, "cancel": cancel, "errors": errors}
    for line in sys.stdin:
        request = json.loads(line)
        result = calls[request.pop("call")](**request)
        value = asyncio.run(result) if asyncio.iscoroutine(result) else result
        print(json.dumps({"result": value}), flush=True)


main()
