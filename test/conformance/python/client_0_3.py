"""Uses an agent with the Python SDK 0.3 over one transport, and prints the responses as one JSON object.

The SDK's parser is strict: it rejects unknown members.

client_0_3.py URL JSONRPC|HTTP+JSON|GRPC
"""

import asyncio
import json
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationAuthenticationInfo,
    PushNotificationConfig,
    Task,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
)


def message(text: str, task: Task | None = None) -> Message:
    known = {} if task is None else {'task_id': task.id, 'context_id': task.context_id}
    return Message(message_id=str(uuid.uuid4()), role='user', parts=[Part(root=TextPart(text=text))], **known)


async def error_of(awaitable) -> str:
    try:
        await awaitable
    except Exception as error:  # noqa: BLE001
        rpc = getattr(error, 'error', None)
        status = error.code().name if callable(getattr(error, 'code', None)) else getattr(error, 'status_code', None)
        return str(getattr(rpc, 'code', status))
    return 'nothing'


def plain(value) -> dict:
    return value.model_dump(mode='json', exclude_none=True, by_alias=True)


async def main(url: str, transport: str) -> None:
    async with httpx.AsyncClient(timeout=20) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        own = {'supported_transports': [transport], 'httpx_client': http}
        if transport == 'GRPC':
            import grpc

            own['grpc_channel_factory'] = grpc.aio.insecure_channel
        client = ClientFactory(ClientConfig(**own)).create(card)
        waiting = ClientFactory(ClientConfig(streaming=False, **own)).create(card)
        report = {'card': card.name}

        [(sent, _)] = [event async for event in waiting.send_message(message('ask'))]
        report['sent'] = plain(sent)
        # Copied at once, because the task manager mutates one task object.
        report['streamed'] = [plain(update or task) async for task, update in client.send_message(message('talk', sent))]
        report['read'] = plain(await client.get_task(TaskQueryParams(id=sent.id, history_length=1)))

        [(question, _)] = [event async for event in waiting.send_message(message('ask'))]
        authentication = PushNotificationAuthenticationInfo(schemes=['Bearer'], credentials='k')
        config = PushNotificationConfig(url='https://hooks.example.org/', token='t', authentication=authentication)
        wanted = TaskPushNotificationConfig(task_id=question.id, push_notification_config=config)
        answer = await client.set_task_callback(wanted)
        report['set'] = plain(answer)
        named = GetTaskPushNotificationConfigParams(
            id=question.id, push_notification_config_id=answer.push_notification_config.id
        )
        report['named'] = plain(await client.get_task_callback(named))
        following = client.resubscribe(TaskIdParams(id=question.id))
        first, _ = await anext(following)
        followed = [plain(first)]
        report['canceled'] = plain(await client.cancel_task(TaskIdParams(id=question.id)))
        report['followed'] = followed + [plain(update or task) async for task, update in following]

        report['missing'] = await error_of(client.get_task(TaskQueryParams(id='no-such-task')))
        report['again'] = await error_of(client.cancel_task(TaskIdParams(id=question.id)))
        print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))
