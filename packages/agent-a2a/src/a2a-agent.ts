import { createHash } from 'node:crypto';
import { DIALECTS, type Message } from '@hopline/a2a';
import type { Agent, Turn } from '@hopline/agent';
import type { RemoteAgent } from '@hopline/agent-card';
import { A2A_LIMITS } from './limits.ts';
import type { A2AOptions } from './options.ts';
import { ForeignClient } from './remote-client.ts';
import { ForeignTurn, resumeOf } from './remote-turn.ts';

/** Skills of one agent that are passed on. */
const SKILLS_MAX = 256;

/** An agent that hands its turns to somebody else's A2A agent of version 0.2, 0.3 or 1.0. Asks it on first need; nothing is checked here. */
export function createA2AAgent(options: A2AOptions): Agent {
  const { url, description, deltas = 'incremental', text = 'answer', headers = {}, onSkipped = () => {}, ...others } = options;
  const { extensions = [], tls = {}, webhooks, ...given } = others;
  const limits = { ...A2A_LIMITS, ...given };
  const client = new ForeignClient({ url, headers, extensions, tls, limits, onSkipped });
  let found: RemoteAgent | undefined;
  return {
    get description() {
      return description ?? (found?.description || 'An A2A agent.');
    },
    skills: async () => {
      found = await client.agent();
      return found.skills.slice(0, SKILLS_MAX).map(({ inputModes: _in, outputModes: _out, ...skill }) => skill);
    },
    run: turn => {
      const ours = foreignContext(url, turn);
      const request = requestOf(turn, ours);
      const params = ({ dialect }: RemoteAgent, webhook?: string) =>
        DIALECTS[dialect].encodeSend(webhook === undefined ? request : { ...request, blocking: false, push: { url: webhook } });
      const reader = { deltas, text, onSkipped };
      return new ForeignTurn({ client, turn, params, context: ours, reader, limits, webhooks }).run();
    },
    close: () => client.close(),
  };
}

function requestOf(turn: Turn, ours: string) {
  const resume = resumeOf(turn);
  const { taskId: _task, contextId: _context, referenceTaskIds: _references, ...said } = turn.message;
  const contextId = resume.contextId ?? ours;
  const message: Message = { ...said, contextId, ...(resume.taskId !== undefined && { taskId: resume.taskId }) };
  const metadata = Object.keys(turn.metadata).length > 0 && { metadata: turn.metadata };
  return { message, blocking: true, ...metadata };
}

/**
 * The context the agent knows ours by: the same on every replica and after a restart, so that it remembers the conversation, without a table of ids;
 * and not ours, so that neither side can name the other's (S0-34), nor one caller another's by choosing the same name. SHA-256 in the form of a UUID (version 8, RFC 9562).
 */
function foreignContext(url: string, { contextId, owner }: Turn): string {
  const whose = owner === undefined ? '' : `\n${JSON.stringify([owner.tenant ?? null, owner.subject ?? null])}`;
  const hex = createHash('sha256').update(`${url}\n${contextId}${whose}`).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
