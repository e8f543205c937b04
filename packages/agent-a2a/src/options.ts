import type { A2ALimits } from './limits.ts';

/**
 * How the texts of an agent's working statuses add up. `incremental`: each is the next piece of the answer; `cumulative`: each is the answer so far;
 * `whole`: each is an answer of its own, and the newest one counts.
 */
export type Deltas = 'incremental' | 'cumulative' | 'whole';

/** What the text of a working status is: the answer, a line about progress, or nothing to show. */
export type StatusText = 'answer' | 'progress' | 'hidden';

/** Something the agent sent that changed nothing; counted by who made the agent, never silent (S2-32). */
export type Skipped = 'unknown event' | 'malformed frame' | 'repeated message' | 'hidden text' | 'empty marker';

export type A2AOptions = Partial<A2ALimits> & {
  /** The agent's endpoint, or the folder its card lies under. Only this origin is ever asked, whatever a card says. */
  url: string;
  description?: string;
  deltas?: Deltas;
  text?: StatusText;
  /** Sent with every request, e.g. `authorization`. */
  headers?: Readonly<Record<string, string>>;
  /** URIs of A2A extensions that the agent is asked to use, at most EXTENSIONS_MAX. */
  extensions?: readonly string[];
  /** PEM texts: who signs the agent's certificate, where that is none of the usual ones, and what we show it. */
  tls?: AgentTls;
  /** Where the agent can call us when it does not stream; absent: it is asked until it is done. */
  webhooks?: Webhooks;
  onSkipped?: (what: Skipped) => void;
};

export type Webhooks = {
  /** An address for the calls of one turn; each of them wakes it up, and says nothing. undefined: there is none that the agent could reach. */
  open(onCalled: () => void): Webhook | undefined;
};

/** `url` is a secret: who knows it may call. */
export type Webhook = { url: string; close(): void };

export type AgentTls = { ca?: string; cert?: string; key?: string };

/** Why a turn with a foreign agent failed: a sentence without content or credentials. */
export class AgentFault extends Error {
  override readonly name = 'AgentFault';
  readonly retryable: boolean;

  constructor(reason: string, retryable: boolean, options?: ErrorOptions) {
    super(reason, options);
    this.retryable = retryable;
  }
}

export const NO_JSON_RPC =
  "the agent's card names no JSON-RPC interface of A2A 0.2, 0.3 or 1.0, and agents are spoken to in no other way";
export const UNREACHABLE = 'the agent cannot be reached';
export const NO_TERMINAL_STATE = 'the stream ended without a terminal state';
