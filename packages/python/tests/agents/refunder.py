"""An agent that asks before it acts."""

from collections.abc import AsyncIterator

from hopline.agent import Agent, AgentEvent, Turn, needs_approval


async def pay_back(order: str, cents: int) -> str:
    return f"{cents} of {order}"


async def refund(turn: Turn) -> AsyncIterator[AgentEvent]:
    approval = turn.approval
    if approval is None:
        yield needs_approval("refund", {"order": turn.text, "cents": 950.0}, resume={"from": turn.text})
    elif approval.approved:
        paid = await turn.tool("refund", approval.arguments, lambda: pay_back(**approval.arguments))
        yield f"Refunded {paid} (from {turn.resume['from']})."
    else:
        yield f"Not refunded: {approval.reason}"


refunder = Agent(name="refunder", description="Pays orders back", run=refund)
