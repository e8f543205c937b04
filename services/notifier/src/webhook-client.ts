import type { IncomingHttpHeaders } from 'node:http';
import { parseRetryAfter } from '@hopline/a2a';
import { Semaphore } from '@hopline/log';
import { ForbiddenAddress, type Resolve, type WebhookRules } from '@hopline/webhook-guard';
import { type Agent, errors, request } from 'undici';
import { HostSemaphores } from './host-semaphores.ts';
import type { Trust } from './trusted-authorities.ts';
import { webhookAgent } from './webhook-connector.ts';

/** Bytes of a response body that are read and discarded, so that its connection can be reused. */
const WEBHOOK_RESPONSE_BYTES_MAX = 16 * 1024;

export type WebhookLimits = {
  /** One attempt, from the connection to the end of the response. */
  timeoutMs: number;
  /** Attempts in flight, in total and to one host. */
  requestsMax: number;
  hostRequestsMax: number;
};

type WebhookRequest = { url: string; headers: Readonly<Record<string, string>>; body: () => string };

export type AttemptOutcome =
  | { kind: 'accepted'; status: number }
  | AttemptFailure
  /** No slot became free before `slotWait` aborted, so nothing was sent. */
  | { kind: 'busy' }
  | { kind: 'aborted' };

/**
 * Logs and metrics get only `reason`, `code` and the host. `code`: the name of the fault in the system, TLS or OpenSSL, such as
 * ECONNREFUSED.
 */
export type AttemptFailure = {
  kind: 'failed';
  reason: FailureReason;
  code?: string;
  status?: number;
  retryAfterMs?: number;
  retry: RetryClass;
};

type FailureReason =
  | 'http_3xx'
  | 'http_4xx'
  | 'http_5xx'
  | 'timeout'
  | 'unreachable'
  | 'certificate'
  | 'forbidden_address'
  | 'forbidden_url'
  | 'unsendable'
  /** No key of HOPLINE_SECRETS_KEY can decrypt the secrets of the configuration. */
  | 'sealed'
  /** The configuration was written by a later version. */
  | 'unknown_dialect';

/**
 * `normal`: the fault may be temporary. `limited`: the webhook refuses, or its address is forbidden. `never`: a retry cannot
 * succeed.
 */
export type RetryClass = 'normal' | 'limited' | 'never';

/** Sends notifications, bounded in time, number and destination. Failures of a webhook are outcomes, never exceptions. */
export class WebhookClient {
  readonly #limits: WebhookLimits;
  readonly #agent: Agent;
  readonly #slots: Semaphore;
  readonly #hostSlots: HostSemaphores;

  /** Default of `trust`: Node's certificate authorities. Tests replace `resolve`. */
  constructor(rules: WebhookRules, limits: WebhookLimits, { trust, resolve }: { trust?: Trust; resolve?: Resolve } = {}) {
    this.#limits = limits;
    this.#agent = webhookAgent({ rules, connectionsMax: limits.hostRequestsMax, resolve, trust });
    this.#slots = new Semaphore(limits.requestsMax);
    this.#hostSlots = new HostSemaphores(limits.hostRequestsMax);
  }

  /** `slotWait` ends the wait for a slot; `signal` ends the attempt. */
  async post(notification: WebhookRequest, slotWait: AbortSignal, signal: AbortSignal): Promise<AttemptOutcome> {
    const waiting = AbortSignal.any([slotWait, signal]);
    // Takes the host's slot first, because an attempt that waits for a slow host must not hold one of the slots that all hosts share.
    const releaseHost = await this.#hostSlots.acquire(new URL(notification.url).host, waiting);
    if (releaseHost === undefined) return { kind: signal.aborted ? 'aborted' : 'busy' };
    try {
      const release = await this.#slots.acquire(waiting);
      if (release === undefined) return { kind: signal.aborted ? 'aborted' : 'busy' };
      try {
        return await this.#attempt(notification, signal);
      } finally {
        release();
      }
    } finally {
      releaseHost();
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #attempt({ url, headers, body }: WebhookRequest, signal: AbortSignal): Promise<AttemptOutcome> {
    const timeout = AbortSignal.timeout(this.#limits.timeoutMs);
    try {
      const response = await request(url, {
        method: 'POST',
        headers,
        body: body(),
        dispatcher: this.#agent,
        signal: AbortSignal.any([timeout, signal]),
      });
      // Only the status decides. A body that breaks off or never ends does not change the outcome.
      await response.body.dump({ limit: WEBHOOK_RESPONSE_BYTES_MAX, signal: AbortSignal.any([timeout, signal]) }).catch(() => {});
      return outcomeOf(response.statusCode, response.headers);
    } catch (error) {
      if (signal.aborted) return { kind: 'aborted' };
      return { kind: 'failed', ...failureOf(error, timeout.aborted) };
    }
  }
}

/** 4xx statuses that ask for a retry: RFC 9110 15.5.9, RFC 8470 5.2, RFC 6585 4. */
const RETRYABLE_4XX = new Set([408, 425, 429]);
const GONE = 410;

function outcomeOf(status: number, headers: IncomingHttpHeaders): AttemptOutcome {
  const single = (value: string | string[] | undefined) => (typeof value === 'string' ? value : undefined);
  if (status >= 200 && status < 300) return { kind: 'accepted', status };
  const waitMs = parseRetryAfter(single(headers['retry-after']), single(headers.date), Date.now());
  const reason = status < 400 ? 'http_3xx' : status < 500 ? 'http_4xx' : 'http_5xx';
  const retry = status === GONE ? 'never' : status >= 500 || RETRYABLE_4XX.has(status) ? 'normal' : 'limited';
  return { kind: 'failed', reason, status, retry, ...(waitMs !== undefined && { retryAfterMs: waitMs }) };
}

/**
 * Codes of Node and OpenSSL for an untrusted, mismatched or expired certificate
 * (https://nodejs.org/api/tls.html#x509-certificate-error-codes).
 */
const CERTIFICATE_FAULT = /CERT|ISSUER|LEAF_SIGNATURE|HOSTNAME|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH/;
const CODE = /^[A-Z][A-Z0-9_]{1,79}$/;

function failureOf(error: unknown, isTimeout: boolean): Omit<AttemptFailure, 'kind'> {
  if (error instanceof ForbiddenAddress) return { reason: 'forbidden_address', retry: 'limited' };
  // A header cannot contain the token or the credentials.
  if (error instanceof errors.InvalidArgumentError) return { reason: 'unsendable', retry: 'never' };
  if (isTimeout || error instanceof errors.ConnectTimeoutError) return { reason: 'timeout', retry: 'normal' };
  const { code } = error as { code?: unknown };
  if (typeof code !== 'string' || !CODE.test(code)) return { reason: 'unreachable', retry: 'normal' };
  return { reason: CERTIFICATE_FAULT.test(code) ? 'certificate' : 'unreachable', code, retry: 'normal' };
}
