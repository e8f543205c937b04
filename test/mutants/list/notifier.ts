import type { Mutant } from '../mutant.ts';

const DELIVERY = 'services/notifier/src/delivery.ts';
const BACKLOG = 'services/notifier/src/backlog.ts';
const BACKLOG_TEST = 'services/notifier/src/backlog.test.ts';
const NOTIFIER_TEST = 'services/notifier/src/notifier.test.ts';
const WORKERS = 'services/notifier/src/delivery-workers.ts';
const WORKERS_TEST = 'services/notifier/src/delivery-workers.test.ts';

export const NOTIFIER_MUTANTS: readonly Mutant[] = [
  {
    name: 'a webhook is sent before its beginning is recorded',
    edits: [
      {
        file: DELIVERY,
        from: 'await progress.begin(delivery.generation);',
        to: 'void progress.begin(delivery.generation).catch(() => {});',
      },
    ],
    tests: [NOTIFIER_TEST],
  },
  {
    name: 'a repeated notification holds other events than the first one',
    edits: [
      { file: DELIVERY, from: "let state: State = { step: 'next', upTo: sending };", to: "let state: State = { step: 'next' };" },
    ],
    tests: [NOTIFIER_TEST],
  },
  {
    name: 'a chunk that replaces text is merged with the text before it',
    edits: [
      {
        file: 'services/notifier/src/pending-delivery.ts',
        from: 'second.append === true && first.lastChunk !== true &&',
        to: 'first.lastChunk !== true &&',
      },
    ],
    tests: ['services/notifier/src/pending-delivery.test.ts'],
  },
  {
    name: 'a new configuration continues with the progress of the old one',
    edits: [
      {
        file: 'services/notifier/src/progress.ts',
        from: 'found?.value.config === config ? found.value : fresh',
        to: 'found?.value ?? fresh',
      },
    ],
    tests: [NOTIFIER_TEST],
  },
  {
    name: 'the last delivered event is sent again',
    edits: [
      {
        file: BACKLOG,
        from: 'if (fact.generation <= this.#start.generation) continue;',
        to: 'if (fact.generation < this.#start.generation) continue;',
      },
    ],
    tests: [BACKLOG_TEST],
  },
  {
    name: 'a webhook receives the task of another caller',
    edits: [
      {
        file: BACKLOG,
        from: 'this.#isOtherOwner = !isSameOwner(this.#start.owner, stored.record.aggregate.owner);',
        to: 'void isSameOwner;',
      },
    ],
    tests: [BACKLOG_TEST, NOTIFIER_TEST],
  },
  {
    name: 'events after a loss of records are taken for delivered ones',
    edits: [
      {
        file: BACKLOG,
        from: 'return stored.seq === seq && stored.record.facts.some(fact => isVisible(fact) && fact.generation === generation);',
        to: 'return stored.seq === seq || generation < 0;',
      },
    ],
    tests: [BACKLOG_TEST],
  },
  {
    name: 'a worker of a released shard starts when another one ends',
    edits: [
      {
        file: WORKERS,
        from: '// A removed worker must not start when another one ends, because the lease would be released without waiting for it.\n      this.#waiting.delete(worker);',
        to: '',
      },
    ],
    tests: [WORKERS_TEST],
  },
  {
    name: 'two workers of one webhook run at the same time',
    edits: [{ file: WORKERS, from: 'done: this.#ending.get(key) ?? Promise.resolve(),', to: 'done: Promise.resolve(),' }],
    tests: [WORKERS_TEST],
  },
  {
    name: 'a webhook decides how long its retries wait',
    edits: [
      {
        file: 'services/notifier/src/retry-policy.ts',
        from: 'Math.min(retryAfterMs, WEBHOOK_RETRY_AFTER_MS_MAX)',
        to: 'retryAfterMs',
      },
    ],
    tests: ['services/notifier/src/retry-policy.test.ts'],
  },
  {
    name: 'a configuration under the id of a finished one is never served',
    edits: [
      {
        file: 'services/notifier/src/owned-configs.ts',
        from: 'if (finished.get(entry.key) !== entry.revision)',
        to: 'if (!finished.has(entry.key))',
      },
    ],
    tests: ['services/notifier/src/owned-configs.test.ts'],
  },
  {
    name: 'a webhook that is gone for good is tried again',
    edits: [
      { file: 'services/notifier/src/webhook-client.ts', from: "status === GONE ? 'never'", to: "status === GONE ? 'limited'" },
    ],
    tests: ['services/notifier/src/webhook-client.test.ts'],
  },
  {
    name: 'a webhook that ends keeps its part of the memory of all backlogs',
    edits: [{ file: 'services/notifier/src/backlog.ts', from: 'this.#budget.bytes -= this.#bytes;', to: '' }],
    tests: ['services/notifier/src/backlog.test.ts'],
  },
];
