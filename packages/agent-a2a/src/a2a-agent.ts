import { createHash } from 'node:crypto';
import { DIALECTS, type Message } from '@hopline/a2a';
import { type Agent, type AgentEvent, eventsOf, RemoteRunCancels, type Turn } from '@hopline/agent';
import type { RemoteAgent } from '@hopline/agent-card';
import { CLUSTER_DEPTH_KEY, CLUSTER_DEPTH_MAX, clusterDepthOf } from '@hopline/events';
import { A2A_LIMITS } from './limits.ts';
import { answerParts } from './open-question.ts';
import type { A2AOptions } from './options.ts';
import { RemoteClient } from './remote-client.ts';
import { cancelRequest, taskIdOf } from './remote-run.ts';
import { RemoteTurn, resumeOf } from './remote-turn.ts';

/** Maximum number of skills registered for one agent. */
const SKILLS_MAX = 256;

/** An agent that runs its turns on a remote A2A agent of version 0.2, 0.3 or 1.0. Creating it sends no request. */
export function createA2AAgent(options: A2AOptions): Agent {
  const { url, description, deltas, text = 'answer', headers = {}, onSkipped = () => {}, ...rest } = options;
  const { extensions = [], tls = {}, webhooks, ...limitOptions } = rest;
  const limits = { ...A2A_LIMITS, ...limitOptions };
  const client = new RemoteClient({ url, headers, extensions, tls, limits, onSkipped });
  const cancels = new RemoteRunCancels();
  let card: RemoteAgent | undefined;
  let isReported = false;
  const runBatches = (turn: Turn) => {
    if (clusterDepthOf(turn.metadata) >= CLUSTER_DEPTH_MAX) return tooDeep();
    const context = remoteContext(url, turn);
    const request = requestOf(turn, context);
    const params = ({ dialect }: RemoteAgent, webhook?: string) =>
      DIALECTS[dialect].encodeSend(webhook === undefined ? request : { ...request, blocking: false, push: { url: webhook } });
    const onCumulative = () => {
      if (!isReported) reportCumulative(turn);
      isReported = true;
    };
    const reader = { deltas, text, onSkipped, onCumulative };
    return new RemoteTurn({ client, turn, params, context, reader, limits, webhooks, cancels }).run();
  };
  return {
    reportsWork: true,
    repeatsText: true,
    get description() {
      return description ?? (card?.description || 'An A2A agent.');
    },
    get card() {
      return client.report;
    },
    skills: async () => {
      card = await client.agent();
      return card.skills.slice(0, SKILLS_MAX).map(({ inputModes: _in, outputModes: _out, ...skill }) => skill);
    },
    run: turn => eventsOf(runBatches(turn)),
    runBatches,
    cancelRemoteRun: async (run, trace) => {
      const taskId = taskIdOf(run);
      if (taskId !== undefined) await cancels.cancel(taskId, cancelRequest(client, taskId, trace));
    },
    continuesRun: (run, resume) => taskIdOf(run) !== undefined && taskIdOf(run) === taskIdOf(resume),
    close: async () => {
      cancels.close();
      await client.close();
    },
  };
}

function reportCumulative({ log }: Turn): void {
  if (log === undefined) return;
  log.info`texts of the agent repeat earlier texts: set "deltas" of its entry to "cumulative", or to "incremental" if each is a piece`;
}

function requestOf(turn: Turn, context: string) {
  const resume = resumeOf(turn);
  const { taskId: _task, contextId: _context, referenceTaskIds: _references, ...content } = turn.message;
  const contextId = resume.contextId ?? context;
  const parts = answerParts(content.parts, resume.asked);
  const message: Message = { ...content, parts, contextId, ...(resume.taskId !== undefined && { taskId: resume.taskId }) };
  const metadata = { ...turn.metadata, [CLUSTER_DEPTH_KEY]: clusterDepthOf(turn.metadata) + 1 };
  return { message, blocking: true, metadata };
}

async function* tooDeep(): AsyncGenerator<AgentEvent[]> {
  const reason = `the message has passed ${CLUSTER_DEPTH_MAX} clusters: the URL of this agent, or of an agent behind it, leads back to a cluster that calls it; correct that URL`;
  yield [{ type: 'failed', reason, retryable: false, cause: 'depth' }];
}

/**
 * The context id sent to the agent. It is derived from ours, because every replica must send the same id without a table of ids. The owner
 * is part of the hash, so that neither the agent nor another caller can name our context (S0-34). SHA-256 in the form of a UUID (version 8,
 * RFC 9562).
 */
function remoteContext(url: string, { contextId, owner }: Turn): string {
  const ownerText = owner === undefined ? '' : `\n${JSON.stringify([owner.tenant ?? null, owner.subject ?? null])}`;
  const hex = createHash('sha256').update(`${url}\n${contextId}${ownerText}`).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
