"""Graphs for `langgraph dev` in this folder, the source of ../../recordings. Only the models are scripted."""

import asyncio
import json
from typing import Annotated, Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    messages: Annotated[list, add_messages]
    a2a_inbox: Any
    a2a_outbox: Any


def model(text):
    return GenericFakeChatModel(messages=iter([AIMessage(content=text)]))


def model_node(text):
    async def node(state, config):
        return {"messages": [await model(text).ainvoke(state["messages"], config)]}

    return node


def chain(**nodes):
    graph = StateGraph(State)
    before = START
    for name, node in nodes.items():
        graph.add_node(name, node)
        graph.add_edge(before, name)
        before = name
    graph.add_edge(before, END)
    return graph.compile()


def chat():
    return chain(answer=model_node("Hello from the server"))


def nested():
    return chain(outer=chain(inner=chat()))


def echo():
    async def node(state):
        received = [[message.type, message.id, message.content] for message in state["messages"]]
        return {"messages": [AIMessage(json.dumps({"received": received, "inbox": state["a2a_inbox"]["message"]}))]}

    return chain(node=node)


def parallel():
    async def join(state):
        remote = {"taskId": "remote", "contextId": "remote"}
        artifact = {"artifactId": "remote-a", "name": "report", "parts": [{"kind": "text", "text": "R"}]}
        get_stream_writer()({"kind": "artifact-update", **remote, "artifact": artifact, "append": False, "lastChunk": True})
        return {"a2a_outbox": {"message": {"messageId": "out-1", "role": "agent", "parts": [{"kind": "text", "text": "joined"}]}, "task": None}}

    graph = StateGraph(State)
    graph.add_node("left", model_node("left one two"))
    graph.add_node("right", model_node("right three four"))
    graph.add_node("join", join)
    graph.add_edge(START, "left")
    graph.add_edge(START, "right")
    graph.add_edge(["left", "right"], "join")
    graph.add_edge("join", END)
    return graph.compile()


def asks():
    def ask(state):
        colour = interrupt({"question": "Which colour?"})
        return {"messages": [AIMessage("painted " + colour + " for " + state["a2a_inbox"]["message"]["messageId"])]}

    return chain(ask=ask)


def fails():
    def bad(state):
        raise ValueError("a secret of the user")

    return chain(bad=bad)


def endless():
    async def wait(state):
        await asyncio.sleep(600)

    return chain(begin=model_node("begun"), wait=wait)
