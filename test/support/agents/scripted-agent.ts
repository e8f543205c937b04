import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Message } from '@hopline/a2a';
import {
  type AgentEvent,
  type AgentTurn,
  artifact,
  type DefinedAgent,
  defineAgent,
  failed,
  needsInput,
  step,
} from '@hopline/agent';

export const REMOTE_KINDS = ['keeps its text', 'keeps no text', 'repeats itself'] as const;
export type RemoteKind = (typeof REMOTE_KINDS)[number];

/** The behavior of an agent for one message. The metadata of the message has a script for each agent. */
export type AgentScript = {
  tokens: number;
  /** 0: all of them in one turn of the event loop. */
  everyMs: number;
  /** How long it writes nothing before it begins. */
  silentMs?: number;
  /** How long it writes nothing in the middle of its text. */
  pause?: { afterTokens: number; ms: number };
  /** Steps before the text, each with an effect that counts, in its middle. */
  steps?: number;
  /** How long each of these steps takes. Default: `everyMs`. */
  stepMs?: number;
  /** A step behind these throws in the first attempt, which then fails as retryable. */
  failsInStep?: boolean;
  /** Splits emoji, so that each half is a token. */
  splitsPairs?: boolean;
  /** Artifacts in addition to the answer, which stay open, and the size of each one's description. */
  openArtifacts?: { count: number; descriptionChars: number };
  /**
   * The text that a remote agent leaves in its task: all of it, only its newest piece, or all of it and a copy in an artifact at the end.
   */
  remote?: RemoteKind;
  credentials?: CredentialsScript;
  /** How the turn ends. `fails once`: its first attempt fails with a retryable error. */
  end: 'done' | 'asks' | 'fails' | 'fails once';
};

/** A request for credentials. */
type CredentialsScript = {
  /** How many of its tokens the agent writes before it asks. */
  afterTokens: number;
  /** When the credentials arrive at the agent, counted from its request. Absent: never. */
  arriveAfterMs?: number;
  /** The agent ends its turn with the request instead of waiting. */
  endsTurn?: true;
};

/** Prefix of the names of the artifacts in addition to the answer. */
export const OPEN_ARTIFACT = 'open-';

/** One run of an agent, as the agent itself saw it. */
export type AgentRun = {
  id: number;
  agent: string;
  taskId: string;
  messageId: string;
  attempt: number;
  process: string;
  tokens: string[];
  /**
   * Keys of the steps whose effect happened in this run, and keys of the steps that it passed, with the run in which the effect happened.
   */
  effects?: string[];
  passed?: PassedStep[];
  fullText: string;
  /** The earlier messages that it was given. Only the simulator keeps them. */
  history?: readonly Message[];
  /** Whether it waits for credentials. */
  isWaiting?: boolean;
  startedAt: number;
  /** When the server delivered its item, first and last, in the process of the run. Only the simulator over the wire knows it. */
  deliveredAt?: Deliveries;
  /** Undefined while it runs. */
  endedAt: number | undefined;
};

export type PassedStep = { key: string; effectOf: number };

/** Times of the first and the last delivery of an item with one number. */
export type Deliveries = { first: number; last: number };

/** Records what each run of an agent emits. */
export type RunRecorder = {
  begin(agent: string, turn: AgentTurn, script: AgentScript): AgentRun;
  /** A step has its effect now. */
  addEffect(run: AgentRun, key: string): void;
  /** A step has returned. */
  addPassed(run: AgentRun, step: PassedStep): void;
  end(run: AgentRun): void;
};

/** Each token names its run, so that text from two runs is recognized. */
export function tokensOf(run: number, { tokens, splitsPairs = false }: AgentScript): string[] {
  return Array.from({ length: tokens }, (_, index) => {
    if (!splitsPairs) return `r${run}.${index} `;
    const emoji = String.fromCodePoint(0x1f300 + ((run * 7 + (index >> 1)) % 256));
    return emoji[index % 2]!;
  });
}

/** An agent that follows the script of the message. */
export function scriptedAgent(name: string, runs: RunRecorder): DefinedAgent {
  return defineAgent({
    name,
    description: `Agent ${name}`,
    skills: [{ name, tags: [name] }],
    run: async function* (turn) {
      const scripts = turn.message.metadata?.scripts as Record<string, AgentScript>;
      const script = scripts[name] ?? { tokens: 1, everyMs: 10, end: 'done' };
      const run = runs.begin(name, turn, script);
      try {
        if (script.silentMs !== undefined) await sleep(script.silentMs, undefined, { signal: turn.signal });
        const { count = 0, descriptionChars = 0 } = script.openArtifacts ?? {};
        for (let index = 0; index < count; index++) {
          await sleep(script.everyMs, undefined, { signal: turn.signal });
          yield artifact({ name: `${OPEN_ARTIFACT}${index}`, description: 'd'.repeat(descriptionChars), text: 'x', last: false });
        }
        for (let index = 0; index < (script.steps ?? 0); index++) {
          const halfMs = (script.stepMs ?? script.everyMs) / 2;
          const passed = yield* step('effect', async ({ key }): Promise<PassedStep> => {
            await sleep(halfMs, undefined, { signal: turn.signal });
            runs.addEffect(run, key);
            await sleep(halfMs, undefined, { signal: turn.signal });
            return { key, effectOf: run.id };
          });
          runs.addPassed(run, passed);
        }
        if (script.failsInStep === true) {
          try {
            yield* step('fails once', () => {
              if (turn.attempt === 1) throw new Error('the script wants it');
            });
          } catch {
            yield failed('the script wants it', { retryable: true });
            return;
          }
        }
        const tokens = tokensOf(run.id, script);
        const askAt = script.credentials && Math.min(script.credentials.afterTokens, tokens.length);
        for (let index = 0; index <= tokens.length; index++) {
          if (script.credentials !== undefined && index === askAt) {
            yield authRequest(script.credentials);
            if (script.credentials.endsTurn) return;
            run.isWaiting = true;
            await credentials(script.credentials, turn.signal);
            run.isWaiting = false;
          }
          const token = tokens[index];
          if (token === undefined) break;
          if (script.pause?.afterTokens === index) await sleep(script.pause.ms, undefined, { signal: turn.signal });
          if (script.everyMs > 0) await sleep(script.everyMs, undefined, { signal: turn.signal });
          run.tokens.push(token);
          yield token;
        }
        if (script.end === 'asks') yield needsInput('Which one?');
        else if (script.end === 'fails') yield failed('the script wants it');
        else if (script.end === 'fails once' && turn.attempt === 1) yield failed('the script wants it', { retryable: true });
      } finally {
        runs.end(run);
      }
    },
  });
}

function authRequest({ endsTurn }: CredentialsScript): AgentEvent {
  const message = { messageId: randomUUID(), role: 'ROLE_AGENT' as const, parts: [{ text: 'Log in first.' }] };
  if (endsTurn) return { type: 'interrupted', state: 'TASK_STATE_AUTH_REQUIRED', message, resume: 'after the login' };
  return { type: 'auth-required', message, resume: 'after the login' };
}

/** Resolves when the credentials have arrived, and rejects when the turn is over. */
async function credentials({ arriveAfterMs }: CredentialsScript, signal: AbortSignal): Promise<void> {
  if (arriveAfterMs !== undefined) return await sleep(arriveAfterMs, undefined, { signal });
  if (!signal.aborted) await once(signal, 'abort');
  signal.throwIfAborted();
}
