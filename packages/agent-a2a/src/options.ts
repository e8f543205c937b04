import type { A2ALimits } from './limits.ts';

/**
 * How the texts of an agent's working statuses form the answer. `incremental`: each is the next piece. `cumulative`: each is the answer so
 * far. `whole`: each replaces the previous one. Absent: the texts themselves show it (`StatusTexts`).
 */
export type Deltas = 'incremental' | 'cumulative' | 'whole';

/** The meaning of the text of a working status: the answer, a progress line, or nothing that clients see. */
export type StatusMeaning = 'answer' | 'progress' | 'hidden';

/** An agent's input that was skipped. It is reported so that it can be counted (S2-32). */
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
  /** Opens a webhook for one turn. A call only triggers a poll. Returns undefined if the agent cannot reach us. */
  open(onCalled: () => void): Webhook | undefined;
};

/** `url` contains a secret token, the only credential of a call. */
export type Webhook = { url: string; close(): void };

export type AgentTls = { ca?: string; cert?: string; key?: string };
