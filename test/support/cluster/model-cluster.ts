import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { Fold } from '@hopline/a2a';
import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { isBalanced, reportTask } from '@hopline/task-audit';
import { type ModelRequest, ModelServer, type Reply, type ResponseStep } from '../agents/model-server.ts';
import { answer, type RemoteAgent, startRemoteAgent } from '../agents/remote-agent.ts';
import type { Frame } from './a2a-stream.ts';
import { Cluster } from './cluster.ts';

export const PLAN = ['⟦', '**🎯 Execution', ' Plan**\n', '1. Argocd: version\n', '⟧', '\n'];
export const VERSION = ['ArgoCD', ' is ', '\n', 'v3.1.8', ' ✅', ' ha', ' ha'];
/** Tokens with their source's name and a number, so that a missing, repeated or swapped token shows in the text. */
export const words = (name: string, count = 120) => Array.from({ length: count }, (_, index) => `${name}${index} `);

/** A cluster with a model-driven supervisor, a scripted model and four agents. */
export class ModelCluster implements AsyncDisposable {
  readonly model: ModelServer;
  readonly cluster: Cluster;
  readonly log: Log;
  readonly agents: { argocd: RemoteAgent; github: RemoteAgent; jira: RemoteAgent; quiet: RemoteAgent };
  readonly #tasks = new Set<string>();

  private constructor(parts: Pick<ModelCluster, 'model' | 'cluster' | 'log' | 'agents'>) {
    this.model = parts.model;
    this.cluster = parts.cluster;
    this.log = parts.log;
    this.agents = parts.agents;
  }

  static async start(env: Record<string, string> = {}): Promise<ModelCluster> {
    const model = await ModelServer.start();
    const agents = await startAgents();
    const cluster = await Cluster.start({
      agents: [
        { name: 'argocd', adapter: 'a2a', url: agents.argocd.url },
        { name: 'github', adapter: 'a2a', url: agents.github.url },
        { name: 'jira', adapter: 'a2a', url: agents.jira.url },
        { name: 'quiet', adapter: 'a2a', url: agents.quiet.url, forwardText: false },
      ],
      env: {
        HOPLINE_PLANNER: 'model',
        HOPLINE_MODEL: 'stand-in',
        OPENAI_BASE_URL: model.url,
        HOPLINE_ACK_WAIT_MS: '5000',
        HOPLINE_MODEL_STEPS_MAX: '4',
        HOPLINE_MODEL_FIRST_TOKEN_MS: '2000',
        ...env,
      },
    });
    const log = await openJetStreamLog({ servers: cluster.nats.url, name: 'test' });
    return new ModelCluster({ model, cluster, log, agents });
  }

  get url(): string {
    return this.cluster.url;
  }

  /** Requests to the model since the test's `script`. */
  get requests(): ModelRequest[] {
    return this.model.requests;
  }

  /** Replies are chosen by the step that a request asks for, so that a second request for one step shows in `requests`. */
  script(...replies: (Reply | ((request: ModelRequest) => Reply))[]): void {
    this.requests.length = 0;
    this.model.reply = request => {
      const reply = replies[stepOf(request) - 1] ?? [];
      return typeof reply === 'function' ? reply(request) : reply;
    };
  }

  /** Folds a stream, asserts that it broke no rule, and notes its task for `assertConserved`. */
  fold(list: readonly Frame[]): Fold {
    const folded = new Fold();
    for (const { event } of list) folded.add(event);
    for (const id of folded.taskIds) this.#tasks.add(id);
    assert.deepEqual(folded.violations, []);
    return folded;
  }

  async assertConserved(): Promise<void> {
    assert.ok(this.#tasks.size > 0);
    for (const taskId of this.#tasks) {
      const audit = (await reportTask(this.log, taskId))?.audit;
      assert.ok(audit !== undefined && isBalanced(audit), JSON.stringify(audit));
      assert.ok(audit.tallies.step.accepted > 0);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.log.close();
    await this.cluster[Symbol.asyncDispose]();
    for (const agent of Object.values(this.agents)) await agent.close();
    await this.model[Symbol.asyncDispose]();
  }
}

async function startAgents(): Promise<ModelCluster['agents']> {
  const argocd = await startRemoteAgent({
    dialect: '0.3',
    script: ({ text, turn }) => {
      if (text.includes('slow')) return slowly(words('argocd'), 15);
      if (text.includes('which')) return [{ token: 'Let me see. ' }, { inputRequired: 'Which cluster?' }];
      if (turn > 1) return answer(['On ', text, ': v3']);
      if (text.includes('broken')) return [{ token: 'so far' }, { fail: true, text: 'out of order' }];
      return [
        { notice: 'start', tool: 'version_service__version' },
        { notice: 'end', tool: 'version_service__version' },
        ...answer(VERSION),
      ];
    },
  });
  const github = await startRemoteAgent({ dialect: '1.0', script: () => slowly(words('github'), 15) });
  let isFirst = true;
  const jira = await startRemoteAgent({
    dialect: '0.3',
    recoverable: false,
    script: ({ text }) => {
      if (!text.includes('once')) return slowly(words('jira'), 5);
      const fails = isFirst;
      isFirst = false;
      if (!fails) return answer(words('kept', 10));
      return [...words('lost', 10).map(token => ({ token })), { pause: 200 }, { cut: true }];
    },
  });
  const quiet = await startRemoteAgent({ dialect: '1.0', script: answer(['between', ' us ', '✅']) });
  return { argocd, github, jira, quiet };
}

async function* slowly(tokens: readonly string[], everyMs: number) {
  for (const token of tokens) {
    yield { token };
    yield { pause: everyMs };
  }
  yield { complete: true as const };
}

/** The step that a model request asks for, 1-based. */
export const stepOf = ({ messages }: ModelRequest) => messages.filter(({ role }) => role === 'assistant').length + 1;
export const call = (name: string, request: string): ResponseStep => ({ call: name, args: { request } });
export const toolResults = (request: ModelRequest) =>
  request.messages.filter(({ role }) => role === 'tool').map(({ content }) => content ?? '');
export const sha = (text: string) => createHash('sha256').update(text).digest('hex');

export const artifactsOf = (list: readonly Frame[], name: string) =>
  list.flatMap(({ event }) =>
    'artifactUpdate' in event && event.artifactUpdate.artifact.name === name ? [event.artifactUpdate] : [],
  );

/** Text of each agent and of the supervisor, as a client folds it (C-24). */
export function sourcesOf(list: readonly Frame[]): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const { artifact, append } of artifactsOf(list, 'streaming_result')) {
    const source = String(artifact.metadata?.sourceAgent);
    const text = artifact.parts.map(part => part.text ?? '').join('');
    texts[source] = append ? (texts[source] ?? '') + text : text;
  }
  return texts;
}
