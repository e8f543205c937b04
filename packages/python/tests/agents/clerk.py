"""An agent with stored steps, whose effects are lines in a file: `python3 -m tests.agents.clerk PORT` serves it until its input ends."""

import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

from hopline.agent import Agent, AgentEvent, StepFailed, Turn, agent_app, failed


async def work(turn: Turn) -> AsyncIterator[AgentEvent]:
    """The message names where the first run dies or fails, and the file."""
    where, name = turn.text.split(" ")
    file = Path(name)

    def effect(what: str) -> int:
        with file.open("a") as lines:
            lines.write(f"{what}\n")
        return sum(line.startswith(what.split(" ")[0]) for line in file.read_text().splitlines())

    def die() -> None:
        if not file.with_suffix(".died").exists():
            file.with_suffix(".died").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    async def charge(key: str) -> dict[str, int]:
        times = effect(f"charge {key}")
        if where == "inside":
            die()
        return {"times": times}

    async def send(_key: str) -> str:
        times = effect("send")
        if where == "away" and times == 1:
            raise ConnectionError("the server is away")
        return f"sent {times}"

    yield "Charging. "
    receipt = await turn.step("charge", charge)
    yield f"Charged {receipt['times']}. "
    if where == "between":
        die()
    try:
        yield await turn.step("send", send)
    except StepFailed as error:
        yield failed(f"{error.name}: {error}", is_retryable=True)


clerk = Agent(name="clerk", description="Charges and sends", run=work)


def serve(port: int) -> None:
    """Serves in a child, and in another one when it was killed. The socket stays open, so that requests wait for the next child."""
    import uvicorn

    with socket.create_server(("127.0.0.1", port)) as listener:
        while True:
            pid = os.fork()
            if pid == 0:
                # Ends with its parent, and with the test.
                threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
                uvicorn.run(agent_app(clerk, f"http://127.0.0.1:{port}/"), fd=listener.fileno(), log_level="warning")
                os._exit(0)
            _, status = os.waitpid(pid, 0)
            if not os.WIFSIGNALED(status):
                return


if __name__ == "__main__":
    serve(int(sys.argv[1]))
