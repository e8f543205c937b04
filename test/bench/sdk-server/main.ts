import { once } from 'node:events';
import { createServer } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type AgentCard, type Artifact, TaskState } from '@a2a-js/sdk';
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  type RequestContext,
} from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';
import { monotonicMs } from '../measure/clock.ts';
import { answerCalls } from '../measure/load-process.ts';
import { ANSWER, tokenAt } from '../tokens.ts';

/**
 * The official SDK's server as its documentation wires it: default handler, tasks in memory, express. The agent sends one artifact update per
 * token. The message names the number of tokens and, optionally, the milliseconds between them.
 */

/** The same answer as the bench's own agent. */
const TOKENS_PER_TURN = 128;

/** When the agent sent its first token, for each message since the last call; monotonic milliseconds. */
let yieldTimesMs: number[] = [];

class Speaker implements AgentExecutor {
  readonly execute = async ({ taskId, contextId, userMessage }: RequestContext, bus: ExecutionEventBus): Promise<void> => {
    const content = userMessage.parts[0]?.content;
    const [tokens = 0, everyMs = 0] = content?.$case === 'text' ? content.value.split(' ').map(Number) : [];
    const status = (state: TaskState) => ({ state, message: undefined, timestamp: new Date().toISOString() });
    bus.publish(
      AgentEvent.task({
        id: taskId,
        contextId,
        status: status(TaskState.TASK_STATE_WORKING),
        artifacts: [],
        history: [userMessage],
        metadata: undefined,
      }),
    );
    yieldTimesMs.push(monotonicMs());
    for (let index = 0; index < tokens; index++) {
      if (everyMs > 0 && index > 0) await new Promise(resolve => setTimeout(resolve, everyMs));
      const update = { taskId, contextId, append: index > 0, lastChunk: index === tokens - 1, metadata: undefined };
      bus.publish(AgentEvent.artifactUpdate({ ...update, artifact: artifactOf(tokenAt(index)) }));
      if (index % TOKENS_PER_TURN === TOKENS_PER_TURN - 1) await nextTurn();
    }
    bus.publish(
      AgentEvent.statusUpdate({ taskId, contextId, status: status(TaskState.TASK_STATE_COMPLETED), metadata: undefined }),
    );
    bus.finished();
  };

  readonly cancelTask = async (): Promise<void> => {};
}

function artifactOf(text: string): Artifact {
  const part = { content: { $case: 'text' as const, value: text }, metadata: undefined, filename: '', mediaType: '' };
  return { artifactId: ANSWER, name: ANSWER, description: '', parts: [part], metadata: undefined, extensions: [] };
}

async function listen(): Promise<string> {
  const app = express();
  const server = createServer(app);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}/`;
  const requestHandler = new DefaultRequestHandler(cardOf(url), new InMemoryTaskStore(), new Speaker());
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  return url;
}

function cardOf(url: string): AgentCard {
  return {
    name: 'bench',
    description: 'streams tokens',
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: '1.0' }],
    provider: undefined,
    version: '1.0.0',
    capabilities: { streaming: true, pushNotifications: false, extensions: [] },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [],
    signatures: [],
  };
}

async function yieldedAtMs(): Promise<number[]> {
  const times = yieldTimesMs;
  yieldTimesMs = [];
  return times;
}

const methods = { listen, yieldedAtMs };
export type SdkServerMethods = typeof methods;

answerCalls(methods);
