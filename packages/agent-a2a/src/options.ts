import type { A2ALimits } from './limits.ts';

/**
 * How the texts of an agent's working statuses form the answer; absent: the texts themselves show it (`StatusTexts`). `incremental`: each
 * is the next piece; `cumulative`: each is the answer so far; `whole`: each replaces the previous one.
 */
export type Deltas = 'incremental' | 'cumulative' | 'whole';

/** The meaning of the text of a working status: the answer, a progress line, or nothing that clients see. */
export type StatusMeaning = 'answer' | 'progress' | 'hidden';

/** Input of the agent that was skipped. It is reported, so that it can be counted (S2-32). */
export type Skipped = 'unknown event' | 'malformed frame' | 'repeated message' | 'hidden text' | 'empty marker';

export type A2AOptions = Partial<A2ALimits> & {
  /** The agent's endpoint, or the base URL of its card. Requests go to this origin only, whatever a card contains. */
  url: string;
  description?: string;
  deltas?: Deltas;
  text?: StatusMeaning;
  /** Sent with every request, e.g. `authorization`. */
  headers?: Readonly<Record<string, string>>;
  /** URIs of the A2A extensions requested from the agent, at most AGENT_EXTENSIONS_MAX. */
  extensions?: readonly string[];
  /** PEM texts: a private certificate authority of the agent, and our client certificate with its key. */
  tls?: AgentTls;
  /** Webhooks for agents that push but do not stream. Absent: the task is polled. */
  webhooks?: Webhooks;
  onSkipped?: (what: Skipped) => void;
};

export type Webhooks = {
  /** Opens a webhook for one turn. A call only triggers a poll. Returns undefined when the agent cannot reach us. */
  open(onCalled: () => void): Webhook | undefined;
};

/** `url` contains a secret token, the only credential of a call. */
export type Webhook = { url: string; close(): void };

export type AgentTls = { ca?: string; cert?: string; key?: string };

/** Why a turn with a remote agent failed: one sentence without content or credentials. */
export class AgentFault extends Error {
  override readonly name = 'AgentFault';
  readonly retryable: boolean;
  /** The same reason as a word of a closed list, for spans. */
  readonly word: string;

  constructor(reason: string, retryable: boolean, { word, ...options }: ErrorOptions & { word?: string } = {}) {
    super(reason, options);
    this.retryable = retryable;
    this.word = word ?? WORDS[reason] ?? 'remote_fault';
  }

  /** The agent did not answer within the time limit of the request. */
  get isDeadline(): boolean {
    return this.word === TOO_SLOW;
  }
}

export const NO_JSON_RPC =
  "the agent's card has no JSON-RPC interface of A2A 0.2, 0.3 or 1.0, the only binding Hopline uses for agents";
export const AGENT_UNREACHABLE = 'the agent cannot be reached';
export const NO_TERMINAL_STATE = 'the stream ended without a terminal state';
export const NOT_JSON = 'the agent sent something other than JSON';

const WORDS: Readonly<Record<string, string>> = {
  [AGENT_UNREACHABLE]: 'unreachable',
  [NO_TERMINAL_STATE]: 'stream_cut',
  [NO_JSON_RPC]: 'no_json_rpc',
  [NOT_JSON]: 'not_json',
};

export function silenceFault(ms: number): AgentFault {
  return new AgentFault(`the agent sent nothing for ${ms / 1000} s`, true, { word: 'silent' });
}

/** The abort reason that `totalFault` recognizes. */
const TOO_SLOW = 'too_slow';

export function totalFault(): AgentFault {
  return new AgentFault('the turn took too long', false, { word: TOO_SLOW });
}
