import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { StepOutcome, TurnSteps } from '@hopline/agent';
import { createA2AAgent } from '@hopline/agent-a2a';
import { listen } from '../../kit/listen.ts';
import { eventsOf, lastOf } from '../../support/agents/turn.ts';

const URI = 'https://hopline.dev/extensions/steps/v1';

type Body = { id: number; method: string; params: Record<string, unknown> };

/**
 * An agent whose stream breaks before its first step: later requests for steps are only in its task. `takes`: whether it takes answers.
 */
async function agentWithSteps(t: TestContext, takes = true) {
  const calls: Body[] = [];
  const headers: (string | undefined)[] = [];
  const asks = [{ id: 'r1', steps: ['charge'] }, { id: 'r2', steps: ['charge'], outcome: '{"value":1}' }, null];
  const task = () => ({
    id: 'remote-1',
    contextId: 'context-1',
    status: { state: asks[0] === null ? 'TASK_STATE_COMPLETED' : 'TASK_STATE_WORKING' },
    metadata: { [URI]: asks[0] },
    artifacts: [{ artifactId: 'a', name: 'response', parts: [{ text: 'charged' }] }],
  });
  const server = createServer(async (request, response) => {
    const json = (value: unknown) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    if (request.method === 'GET') {
      const { port } = server.address() as AddressInfo;
      const supportedInterfaces = [{ url: `http://127.0.0.1:${port}/`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }];
      return json({ name: 'clerk', supportedInterfaces, capabilities: { streaming: true, extensions: [{ uri: URI }] } });
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Body;
    calls.push(body);
    headers.push(request.headers['a2a-extensions'] as string | undefined);
    const { id } = body;
    if (body.method === 'SendStreamingMessage') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const { metadata: _lost, ...begun } = task();
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { task: { ...begun, artifacts: [] } } })}\n\n`);
      return response.end();
    }
    if (body.method === 'GetTask') return json({ jsonrpc: '2.0', id, result: task() });
    if (body.method === 'AnswerStep' && takes) {
      asks.shift();
      return json({ jsonrpc: '2.0', id, result: {} });
    }
    return json({ jsonrpc: '2.0', id, error: { code: -32001, message: 'not here' } });
  });
  const origin = await listen(server);
  const agent = createA2AAgent({ url: `${origin}/` });
  t.after(async () => {
    await agent.close();
    server.closeAllConnections();
    server.close();
  });
  const answers = () => calls.flatMap(({ method, params }) => (method === 'AnswerStep' ? [params] : []));
  return { agent, answers, headers };
}

function memory() {
  const stored: StepOutcome[] = [];
  const steps: TurnSteps = {
    begin: async step => ({ key: `key of ${step}` }),
    end: async outcome => void stored.push(outcome),
  };
  return { stored, steps };
}

test('a step whose request was lost with the stream is read from the task, stored and answered', async t => {
  const { agent, answers, headers } = await agentWithSteps(t);
  const { stored, steps } = memory();
  const events = await eventsOf(agent, 'charge', { steps });
  assert.equal(lastOf(events, 'done').type, 'done');
  assert.deepEqual(stored, [{ value: 1 }]);
  assert.deepEqual(answers(), [
    { taskId: 'remote-1', id: 'r1', key: 'key of charge' },
    { taskId: 'remote-1', id: 'r2' },
  ]);
  assert.deepEqual(new Set(headers), new Set([URI]));
});

test('an agent that refuses the answer to a step fails the turn as retryable', async t => {
  const { agent } = await agentWithSteps(t, false);
  const failed = lastOf(await eventsOf(agent, 'charge', { steps: memory().steps }), 'failed');
  assert.deepEqual([failed.reason, failed.retryable], ['the agent refused the answer to a step with error -32001', true]);
});

test('where steps cannot be stored, the agent gets an error', async t => {
  const { agent, answers } = await agentWithSteps(t);
  await eventsOf(agent, 'charge');
  assert.deepEqual(answers()[0], { taskId: 'remote-1', id: 'r1', error: 'this agent runs where steps cannot be stored' });
});
