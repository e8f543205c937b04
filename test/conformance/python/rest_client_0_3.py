"""Uses an agent over HTTP+JSON of A2A 0.3 with the Python SDK, and prints what its own parser made of the answers, as one JSON object."""

import asyncio
import json
import sys
import uuid

import httpx
from a2a.client.errors import A2AClientHTTPError
from a2a.client.transports.rest import RestTransport
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    MessageSendConfiguration,
    MessageSendParams,
    Part,
    PushNotificationAuthenticationInfo,
    PushNotificationConfig,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
)


def params(text: str, task_id: str | None = None) -> MessageSendParams:
    message = Message(message_id=str(uuid.uuid4()), role='user', parts=[Part(root=TextPart(text=text))], task_id=task_id)
    return MessageSendParams(message=message, configuration=MessageSendConfiguration(blocking=True, accepted_output_modes=['text']))


def seen(value) -> dict:
    return value.model_dump(mode='json', exclude_none=True, by_alias=True)


async def main(url: str) -> None:
    async with httpx.AsyncClient(timeout=20) as http:
        client = RestTransport(http, url=url)
        sent = await client.send_message(params('ask'))
        streamed = [event async for event in client.send_message_streaming(params('say', sent.id))]
        followed = []
        asked = await client.send_message(params('ask'))
        async for event in client.resubscribe(TaskIdParams(id=asked.id)):
            followed.append(event)
            break
        authentication = PushNotificationAuthenticationInfo(schemes=['Bearer'], credentials='k')
        config = PushNotificationConfig(url='https://hooks.example.org/', token='t', authentication=authentication)
        answer = await client.set_task_callback(TaskPushNotificationConfig(task_id=asked.id, push_notification_config=config))
        named = await client.get_task_callback(
            GetTaskPushNotificationConfigParams(id=asked.id, push_notification_config_id=answer.push_notification_config.id)
        )
        canceled = await client.cancel_task(TaskIdParams(id=asked.id))
        try:
            await client.get_task(TaskQueryParams(id='no-such-task'))
            missing = 200
        except A2AClientHTTPError as error:
            missing = error.status_code
        read = await client.get_task(TaskQueryParams(id=sent.id, history_length=1))
        print(
            json.dumps(
                {
                    'sent': seen(sent),
                    'streamed': [seen(event) for event in streamed],
                    'followed': [seen(event) for event in followed],
                    'answer': seen(answer),
                    'named': seen(named),
                    'canceled': seen(canceled),
                    'missing': missing,
                    'read': seen(read),
                }
            )
        )


asyncio.run(main(sys.argv[1]))
