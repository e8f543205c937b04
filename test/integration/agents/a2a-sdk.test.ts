import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { AgentCard, Artifact, Message, Task, TaskArtifactUpdateEvent, TaskState, TaskStatusUpdateEvent } from '@a2a-js/sdk';
import { duplicateInterfacesForLegacy } from '@a2a-js/sdk/compat/v0_3';
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  type RequestContext,
} from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import type { Agent } from '@hopline/agent';
import { createA2AAgent } from '@hopline/agent-a2a';
import express from 'express';
import { eventsOf, lastOf, textOf } from '../../support/agents/turn.ts';

/** Agents written with the official SDK and served by its Express server, including its bugs. */
type Script = (turn: {
  status(text: string): void;
  artifact(text: string, append: boolean, last: boolean): void;
  end(state: TaskState, text?: string): void;
  text: string;
}) => Promise<void>;

function executor(script: Script): AgentExecutor {
  return {
    execute: async (request: RequestContext, bus: ExecutionEventBus) => {
      const { taskId, contextId, userMessage } = request;
      const message = (text: string) =>
        Message.fromJSON({ messageId: randomUUID(), role: 'ROLE_AGENT', parts: [{ text }], taskId, contextId });
      const status = (state: TaskState, text?: string) => ({
        state,
        timestamp: new Date().toISOString(),
        message: text === undefined ? undefined : message(text),
      });
      const task = {
        id: taskId,
        contextId,
        status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: undefined },
      };
      bus.publish(AgentEvent.task(request.task ?? { ...Task.fromJSON({}), ...task, history: [userMessage] }));
      const update = (state: TaskState, text?: string) =>
        bus.publish(
          AgentEvent.statusUpdate({ ...TaskStatusUpdateEvent.fromJSON({}), taskId, contextId, status: status(state, text) }),
        );
      await script({
        text: userMessage.parts.map(part => (part.content?.$case === 'text' ? part.content.value : '')).join(''),
        status: text => update(TaskState.TASK_STATE_WORKING, text),
        artifact: (text, append, lastChunk) => {
          const artifact = Artifact.fromJSON({ artifactId: 'a1', name: 'answer', parts: [{ text }] });
          bus.publish(
            AgentEvent.artifactUpdate({
              ...TaskArtifactUpdateEvent.fromJSON({}),
              taskId,
              contextId,
              artifact,
              append,
              lastChunk,
            }),
          );
        },
        end: update,
      });
      bus.finished();
    },
    cancelTask: async () => {},
  };
}

async function sdkAgent(t: TestContext, version: '1.0' | '0.3', script: Script): Promise<Agent> {
  const app = express();
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const interfaces = [{ url: `${url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }];
  const supportedInterfaces = version === '1.0' ? interfaces : duplicateInterfacesForLegacy(interfaces, ['JSONRPC']);
  const card = AgentCard.fromJSON({
    name: 'SDK',
    description: 'Made with the SDK',
    version: '1',
    capabilities: { streaming: true },
  });
  const handler = new DefaultRequestHandler({ ...card, supportedInterfaces }, new InMemoryTaskStore(), executor(script));
  const legacyCompat = { enabled: version === '0.3' };
  if (version === '1.0') app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: handler }));
  else
    app.get(
      '/.well-known/agent-card.json',
      (_request, response) =>
        void response.json({
          name: 'SDK',
          url: `${url}/rpc`,
          protocolVersion: '0.3.0',
          capabilities: { streaming: true },
          skills: [],
        }),
    );
  app.use('/rpc', jsonRpcHandler({ requestHandler: handler, userBuilder: UserBuilder.noAuthentication, legacyCompat }));
  const agent = createA2AAgent({ url });
  t.after(async () => {
    await agent.close();
    server.close();
    server.closeAllConnections();
  });
  return agent;
}

for (const version of ['1.0', '0.3'] as const) {
  test(`an SDK agent called with ${version}: statuses and artifact chunks`, async t => {
    const agent = await sdkAgent(t, version, async ({ status, artifact, end }) => {
      status('🔧 Calling tool: lookup\n');
      status('✅ Tool lookup completed\n');
      artifact('Hello', false, false);
      artifact(' ', true, false);
      artifact('wörld', true, true);
      end(TaskState.TASK_STATE_COMPLETED);
    });
    const events = await eventsOf(agent, 'hi');
    assert.deepEqual(
      events.map(event => (event.type === 'artifact' ? event.artifact.parts[0]?.text : event.type)),
      ['tool', 'tool', 'Hello', ' ', 'wörld', 'done'],
    );
  });

  test(`an SDK agent called with ${version}: per-token statuses, then input required, then the rest`, async t => {
    const agent = await sdkAgent(t, version, async ({ status, end, text }) => {
      if (text === 'start') {
        for (const token of ['a', ' ', 'a', '\n']) status(token);
        return end(TaskState.TASK_STATE_INPUT_REQUIRED, 'go on?');
      }
      status(`received ${text}`);
      end(TaskState.TASK_STATE_COMPLETED, 'bye');
    });
    const first = await eventsOf(agent, 'start');
    assert.equal(textOf(first), 'a a\n');
    const question = lastOf(first, 'interrupted');
    assert.equal(question.message.parts[0]?.text, 'go on?');
    const second = await eventsOf(agent, 'yes', { resume: question.resume });
    assert.equal(textOf(second), 'received yes');
    assert.equal(lastOf(second, 'done').message?.parts[0]?.text, 'bye');
  });

  test(`an SDK agent called with ${version}: failure`, async t => {
    const agent = await sdkAgent(t, version, async ({ end }) => end(TaskState.TASK_STATE_FAILED, 'no luck'));
    const failed = lastOf(await eventsOf(agent, 'x'), 'failed');
    assert.equal(failed.message?.parts[0]?.text, 'no luck');
    assert.equal(failed.state, 'TASK_STATE_FAILED');
  });
}
