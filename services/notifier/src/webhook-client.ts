import { ForbiddenAddress, type Resolve, type WebhookRules } from '@hopline/webhook-guard';
import { type Agent, errors, request } from 'undici';
import { Gate, HostGates } from './gate.ts';
import type { Trust } from './trusted-authorities.ts';
import { webhookAgent } from './webhook-connector.ts';

/** An answer's body is read up to here and thrown away, so that its connection can be used again; bytes. */
const ANSWER_BYTES_MAX = 16 * 1024;

export type WebhookLimits = {
  /** One attempt, from connecting to the end of the answer; milliseconds. */
  timeoutMs: number;
  /** Attempts in flight, and of them to one host. */
  requestsMax: number;
  hostRequestsMax: number;
};

export type WebhookRequest = { url: string; headers: Readonly<Record<string, string>>; body: () => string };

/** What became of one attempt. `reason`, `code` and `host` are all that a log or a metric may know of it. `code`: what the system, TLS or OpenSSL calls it: ECONNREFUSED, CERT_HAS_EXPIRED. */
export type Outcome =
  | { kind: 'taken'; status: number }
  | { kind: 'failed'; reason: FailureReason; code?: string; status?: number; retryAfterMs?: number; chance: Chance }
  /** All places were taken for as long as `patience` lasted: nothing was sent. */
  | { kind: 'busy' }
  | { kind: 'aborted' };

type FailureReason =
  | 'http_3xx'
  | 'http_4xx'
  | 'http_5xx'
  | 'timeout'
  | 'unreachable'
  | 'certificate'
  | 'forbidden_address'
  | 'forbidden_url'
  | 'unsendable';

/** `later`: it may well be better later. `little`: the webhook refuses, or leads nowhere it may lead; a few more attempts are made. `none`: trying again is pointless. */
export type Chance = 'later' | 'little' | 'none';

/** Sends to webhooks: bounded in time, in number, and in where it goes. Never throws for what a webhook does. */
export class WebhookClient {
  readonly #limits: WebhookLimits;
  readonly #agent: Agent;
  readonly #all: Gate;
  readonly #hosts: HostGates;

  /** `trust`: without it the authorities that Node trusts. `resolve`: for tests, another name server. */
  constructor(rules: WebhookRules, limits: WebhookLimits, { trust, resolve }: { trust?: Trust; resolve?: Resolve } = {}) {
    this.#limits = limits;
    this.#agent = webhookAgent({ rules, connectionsMax: limits.hostRequestsMax, resolve, trust });
    this.#all = new Gate(limits.requestsMax);
    this.#hosts = new HostGates(limits.hostRequestsMax);
  }

  /** `patience` aborts: waits no longer for a place. `signal` aborts: stops at once. */
  async post(what: WebhookRequest, patience: AbortSignal, signal: AbortSignal): Promise<Outcome> {
    const waiting = AbortSignal.any([patience, signal]);
    // The host's gate first: who waits for a slow host must not hold one of the places that all hosts share.
    const leaveHost = await this.#hosts.enter(new URL(what.url).host, waiting);
    if (leaveHost === undefined) return { kind: signal.aborted ? 'aborted' : 'busy' };
    try {
      const leave = await this.#all.enter(waiting);
      if (leave === undefined) return { kind: signal.aborted ? 'aborted' : 'busy' };
      try {
        return await this.#attempt(what, signal);
      } finally {
        leave();
      }
    } finally {
      leaveHost();
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #attempt({ url, headers, body }: WebhookRequest, signal: AbortSignal): Promise<Outcome> {
    const late = AbortSignal.timeout(this.#limits.timeoutMs);
    try {
      const answer = await request(url, {
        method: 'POST',
        headers,
        body: body(),
        dispatcher: this.#agent,
        signal: AbortSignal.any([late, signal]),
      });
      // The status is the answer; a body that breaks off or never ends does not take it back.
      await answer.body.dump({ limit: ANSWER_BYTES_MAX, signal: AbortSignal.any([late, signal]) }).catch(() => {});
      return outcomeOf(answer.statusCode, answer.headers['retry-after']);
    } catch (error) {
      if (signal.aborted) return { kind: 'aborted' };
      return { kind: 'failed', ...failureOf(error, late.aborted) };
    }
  }
}

/** RFC 9110 15.5.9, RFC 8470 5.2, RFC 6585 4: these say "later" themselves. */
const LATER = new Set([408, 425, 429]);
const GONE = 410;

function outcomeOf(status: number, retryAfter: string | string[] | undefined): Outcome {
  if (status >= 200 && status < 300) return { kind: 'taken', status };
  const later = retryAfterMs(retryAfter, Date.now());
  const reason = status < 400 ? 'http_3xx' : status < 500 ? 'http_4xx' : 'http_5xx';
  const chance = status === GONE ? 'none' : status >= 500 || LATER.has(status) ? 'later' : 'little';
  return { kind: 'failed', reason, status, chance, ...(later !== undefined && { retryAfterMs: later }) };
}

/** RFC 9110 10.2.3: seconds, or a date. undefined: not said, or not understood. */
export function retryAfterMs(value: string | string[] | undefined, nowMs: number): number | undefined {
  if (typeof value !== 'string') return undefined;
  if (/^\d{1,9}$/.test(value.trim())) return Number(value) * 1_000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}

/** Codes of Node and OpenSSL (https://nodejs.org/api/tls.html#x509-certificate-error-codes) for a certificate that is not trusted, has another name, or is not good at this time. */
const CERTIFICATE_FAULT = /CERT|ISSUER|LEAF_SIGNATURE|HOSTNAME|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH/;
const CODE = /^[A-Z][A-Z0-9_]{1,79}$/;

function failureOf(error: unknown, late: boolean): { reason: FailureReason; code?: string; chance: Chance } {
  if (error instanceof ForbiddenAddress) return { reason: 'forbidden_address', chance: 'little' };
  // A token or credentials that no header can hold.
  if (error instanceof errors.InvalidArgumentError) return { reason: 'unsendable', chance: 'none' };
  if (late || error instanceof errors.ConnectTimeoutError) return { reason: 'timeout', chance: 'later' };
  const { code } = error as { code?: unknown };
  if (typeof code !== 'string' || !CODE.test(code)) return { reason: 'unreachable', chance: 'later' };
  return { reason: CERTIFICATE_FAULT.test(code) ? 'certificate' : 'unreachable', code, chance: 'later' };
}
