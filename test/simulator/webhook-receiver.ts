import { parseCursor } from '@hopline/events';
import type { NotifierDeps } from '../../services/notifier/src/notifier.ts';
import type { Notification } from '../support/task-promises.ts';
import type { Random } from './random.ts';
import type { Trace } from './trace.ts';
import type { VirtualClock, VirtualProcess } from './virtual-clock.ts';

/** A notification that the receiver accepted. */
type Received = Notification & { process: string };

const DELAY_MS_MAX = 20;

/** The clients' webhooks. */
export class WebhookReceiver {
  readonly #clock: VirtualClock;
  readonly #random: Random;
  readonly #trace: Trace;
  readonly received: Received[] = [];
  /** Until then, requests are refused with 503. */
  downUntil = 0;
  /** Until then notifications are accepted, but the answers are lost. */
  answersLostUntil = 0;

  constructor(clock: VirtualClock, random: Random, trace: Trace) {
    this.#clock = clock;
    this.#random = random;
    this.#trace = trace;
  }

  /** The notifier's way to the webhooks. */
  client(process: VirtualProcess): NonNullable<NotifierDeps['client']> {
    const clock = this.#clock;
    return {
      post: ({ url, headers, body }, _slotWait, signal) =>
        new Promise(resolve => {
          const text = body();
          const [generation, after] = ['x-hopline-cursor', 'x-hopline-after'].map(
            name => parseCursor(headers[name]!)!.generation,
          );
          signal.addEventListener('abort', () => resolve({ kind: 'aborted' }), { once: true });
          const answer = (outcome: Parameters<typeof resolve>[0], ms: number) =>
            clock.as(process, () => clock.after(ms, () => resolve(outcome)));
          clock.as(undefined, () =>
            clock.after(this.#random.next() * DELAY_MS_MAX, () => {
              const isDown = this.downUntil > clock.nowMs;
              this.#trace.add(process.name, 'webhook', url, String(generation), isDown ? 'refused' : 'taken');
              if (isDown) return answer({ kind: 'failed', reason: 'http_5xx', status: 503, retry: 'normal' }, 1);
              this.received.push({ url, generation: generation!, after: after!, body: text, process: process.name });
              if (this.answersLostUntil > clock.nowMs) answer({ kind: 'failed', reason: 'timeout', retry: 'normal' }, 2_000);
              else answer({ kind: 'accepted', status: 200 }, this.#random.next() * DELAY_MS_MAX);
            }),
          );
        }),
      close: async () => {},
    };
  }
}
