import type { Mutant } from '../mutant.ts';

const VIEWER = 'packages/a2a-server/src/stream/viewer.ts';
const VIEWER_TEST = 'packages/a2a-server/src/stream/viewer.test.ts';
const FEEDS = 'packages/a2a-server/src/feed/task-feeds.ts';
const LISTS = 'packages/a2a-server/src/task-lists.ts';
const LISTS_TEST = 'packages/a2a-server/src/task-lists.test.ts';
const LIST_TEST = 'packages/a2a-http/src/tasks-list.test.ts';
const SUBSCRIBE_TEST = 'packages/a2a-http/src/tasks-subscribe.test.ts';
const SEND_TEST = 'packages/a2a-http/src/message-send.test.ts';
const OWNERS_TEST = 'packages/a2a-http/src/owners.test.ts';
const PUSH_TEST = 'packages/a2a-http/src/push-configs.test.ts';

export const A2A_SERVER_MUTANTS: readonly Mutant[] = [
  {
    name: 'a viewer resumes one event too late',
    edits: [{ file: VIEWER, from: 'this.#next = after.generation + 1;', to: 'this.#next = after.generation + 2;' }],
    tests: [VIEWER_TEST, SUBSCRIBE_TEST],
  },
  {
    name: 'a hole in the history is shown without a gap',
    edits: [
      {
        file: VIEWER,
        from: 'if (!entry.follows(this.#next - 1)) {',
        to: 'if (!entry.follows(this.#next - 1) && from > feed.startSeq) {',
      },
    ],
    tests: [VIEWER_TEST, SUBSCRIBE_TEST],
  },
  {
    name: 'a subscription ends at a question',
    edits: [
      {
        file: VIEWER,
        from: "return isTerminal(state) || (this.#endsAtInputRequired && state === 'TASK_STATE_INPUT_REQUIRED');",
        to: "return isTerminal(state) || state === 'TASK_STATE_INPUT_REQUIRED';",
      },
    ],
    tests: [VIEWER_TEST, SUBSCRIBE_TEST],
  },
  {
    name: 'a slow client is never cut',
    edits: [
      {
        file: VIEWER,
        from: 'if (this.#sink.backlog > this.#server.limits.viewerBufferBytesMax) {',
        to: 'if (this.#sink.backlog > Number.MAX_SAFE_INTEGER) {',
      },
    ],
    tests: [VIEWER_TEST, 'packages/a2a-http/src/stalled-clients.test.ts'],
  },
  {
    name: 'the snapshot of a followed task is stale',
    edits: [{ file: FEEDS, from: "if (cached === known && mode === 'existing') await cached.feed.refresh();", to: '' }],
    tests: ['packages/a2a-server/src/feed/refresh.test.ts'],
  },
  {
    name: 'the task of another caller can be read',
    edits: [
      {
        file: FEEDS,
        from: 'if (role !== this.#role || !isSameOwner(owner, caller)) throw',
        to: 'void owner, caller;\n    if (role !== this.#role) throw',
      },
    ],
    tests: [OWNERS_TEST],
  },
  {
    name: 'recent events on both sides of a gap count as contiguous',
    edits: [
      {
        file: 'packages/a2a-server/src/feed/fact-ring.ts',
        from: 'if (newest !== undefined && entry.generation !== newest.generation + 1) this.empty();',
        to: 'void newest;',
      },
    ],
    tests: ['packages/a2a-server/src/feed/fact-ring.test.ts'],
  },
  {
    name: 'a feed folds a record that does not follow the newest one',
    edits: [
      {
        file: 'packages/a2a-server/src/feed/task-feed.ts',
        from: 'if (this.lastSeq === 0 || seq <= this.#storedTo) return true;',
        to: 'if (seq > 0) return true;',
      },
    ],
    tests: ['packages/a2a-server/src/feed/refresh.test.ts', SUBSCRIBE_TEST],
  },
  {
    name: 'another message with a known id counts as its retry',
    edits: [
      {
        file: 'packages/a2a-server/src/operations/message-claim.ts',
        from: 'if (known.value.fingerprint === fingerprint) return known.value.taskId;',
        to: 'if (known.value.taskId) return known.value.taskId;',
      },
    ],
    tests: [SEND_TEST],
  },
  {
    name: 'the retry of a first message begins its stream in the middle',
    edits: [
      {
        file: 'packages/a2a-server/src/operations/turn.ts',
        from: "start: isFirst ? 'beginning' : 'stored',",
        to: "start: isFirst ? 'stored' : 'stored',",
      },
    ],
    tests: ['packages/a2a-http/src/message-stream.test.ts', SEND_TEST],
  },
  {
    name: 'the retry of a later message begins its stream in the middle of its turn',
    edits: [
      {
        file: 'packages/a2a-server/src/operations/message-stream.ts',
        from: 'viewer.followFromMessage(feed, messageId);',
        to: 'viewer.followFromSnapshot(feed);',
      },
    ],
    tests: ['packages/a2a-http/src/message-stream.test.ts', SEND_TEST],
  },
  {
    name: 'a cancel is answered before the task has ended',
    edits: [
      {
        file: 'packages/a2a-server/src/operations/tasks-cancel.ts',
        from: 'await waitAround(append, feed, ends, { timeoutMs: server.limits.cancelWaitMsMax, signal: context.signal });',
        to: 'void waitAround, ends;\n      await append();',
      },
    ],
    tests: ['packages/a2a-http/src/json-rpc-binding.test.ts', 'packages/a2a-http/src/legacy-methods.test.ts'],
  },
  {
    name: 'the next page of a list begins one task too late',
    edits: [
      {
        file: 'packages/a2a-server/src/operations/tasks-list.ts',
        from: 'next: at < candidates.length ? candidates[at - 1] : undefined',
        to: 'next: at < candidates.length ? candidates[at] : undefined',
      },
    ],
    tests: [LIST_TEST],
  },
  {
    name: 'a search by agent skips tasks whose row lacks their agents',
    edits: [
      {
        file: 'packages/a2a-server/src/operations/tasks-list.ts',
        from: 'listed.agents?.includes(agent);',
        to: 'listed.agents?.includes(agent) === true;',
      },
    ],
    tests: [LIST_TEST],
  },
  {
    name: 'a list shows an older state of a task',
    edits: [
      {
        file: LISTS,
        from: 'if ((this.#tasks.get(task.taskId)?.generation ?? -1) < task.generation) this.#tasks.set(task.taskId, task);',
        to: 'this.#tasks.set(task.taskId, task);',
      },
    ],
    tests: [LISTS_TEST, LIST_TEST],
  },
  {
    name: 'a list skips the tasks of pages that it has not read',
    edits: [{ file: LISTS, from: '(unreadTo === undefined || task.at > unreadTo) &&', to: '' }],
    tests: [LISTS_TEST, LIST_TEST],
  },
  {
    name: 'the webhook of another caller can be deleted',
    edits: [
      {
        file: 'packages/a2a-server/src/operations/push-store.ts',
        from: 'if (known !== undefined && isSameOwner(known.value.owner, context.caller))',
        to: 'if (known !== undefined)',
      },
    ],
    tests: [OWNERS_TEST, PUSH_TEST],
  },
  {
    name: 'a webhook that is set again repeats what it has received',
    edits: [
      {
        file: 'packages/a2a-server/src/operations/push-store.ts',
        from: 'Math.max(after, progress?.generation ?? 0)',
        to: 'after',
      },
    ],
    tests: [PUSH_TEST],
  },
  {
    name: 'two callers of a tenant that read at once count its new webhooks twice less',
    edits: [
      {
        file: 'packages/a2a-server/src/quotas/webhook-usages.ts',
        from: 'party.addedBefore = added[index]!;',
        to: 'party.addedBefore = plus(party.addedBefore, added[index]!);',
      },
    ],
    tests: ['packages/a2a-server/src/quotas/webhook-usages.test.ts'],
  },
];
