"""Uses an agent with the Python SDK 1.x over one binding, and prints the parsed responses as one JSON object.

client_1.py URL JSONRPC|HTTP+JSON|GRPC 1.0|0.3

The version selects the interfaces that the client gets; for 0.3 it uses the SDK's compatibility layer.
"""

import asyncio
import json
import sys
import uuid

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as a2a
from google.protobuf.json_format import MessageToDict


def request(text: str, task: a2a.Task | None = None) -> a2a.SendMessageRequest:
    known = {} if task is None else {'task_id': task.id, 'context_id': task.context_id}
    message = a2a.Message(message_id=str(uuid.uuid4()), role=a2a.Role.ROLE_USER, parts=[a2a.Part(text=text)], **known)
    return a2a.SendMessageRequest(message=message)


async def error_of(awaitable) -> str:
    try:
        await awaitable
    except Exception as error:  # noqa: BLE001
        return type(error).__name__
    return 'nothing'


def plain(value) -> dict | list:
    return [plain(one) for one in value] if isinstance(value, list) else MessageToDict(value)


async def main(url: str, binding: str, version: str) -> None:
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, url).get_agent_card()
    offered = [one for one in card.supported_interfaces if one.protocol_version == version]
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(offered)
    own = {'supported_protocol_bindings': [binding], 'grpc_channel_factory': grpc.aio.insecure_channel}
    client = ClientFactory(ClientConfig(**own)).create(card)
    waiting = ClientFactory(ClientConfig(streaming=False, **own)).create(card)
    report = {'card': card.name}

    [sent] = [event.task async for event in waiting.send_message(request('ask'))]
    report['sent'] = sent
    report['streamed'] = [event async for event in client.send_message(request('talk', sent))]
    report['read'] = await client.get_task(a2a.GetTaskRequest(id=sent.id, history_length=1))

    [question] = [event.task async for event in waiting.send_message(request('ask'))]
    wanted = a2a.TaskPushNotificationConfig(
        task_id=question.id,
        url='https://hooks.example.org/',
        token='t',
        authentication=a2a.AuthenticationInfo(scheme='Bearer', credentials='k'),
    )
    report['set'] = await client.create_task_push_notification_config(wanted)
    named = {'task_id': question.id, 'id': report['set'].id}
    report['named'] = await client.get_task_push_notification_config(a2a.GetTaskPushNotificationConfigRequest(**named))
    if version == '1.0':
        wanted_list = a2a.ListTaskPushNotificationConfigsRequest(task_id=question.id)
        report['configs'] = list((await client.list_task_push_notification_configs(wanted_list)).configs)
        await client.delete_task_push_notification_config(a2a.DeleteTaskPushNotificationConfigRequest(**named))
        report['tasks'] = list((await client.list_tasks(a2a.ListTasksRequest(page_size=2))).tasks)
    following = client.subscribe(a2a.SubscribeToTaskRequest(id=question.id))
    followed = [await anext(following)]
    report['canceled'] = await client.cancel_task(a2a.CancelTaskRequest(id=question.id))
    report['followed'] = followed + [event async for event in following]

    report = {name: value if isinstance(value, str) else plain(value) for name, value in report.items()}
    report['missing'] = await error_of(client.get_task(a2a.GetTaskRequest(id='no-such-task')))
    report['again'] = await error_of(client.cancel_task(a2a.CancelTaskRequest(id=question.id)))
    print(json.dumps(report))
    await client.close()
    await waiting.close()


asyncio.run(main(*sys.argv[1:]))
