import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import { editedSource, type SourceEdit } from '../support/source-edits.ts';

/** A defect of the past, put back into the source of production code when it is loaded, so that production code needs no switch for it. */
type Mutation = {
  /** Themes whose faults reveal it. */
  themes: readonly string[];
  /** Seeds of these themes within which it is found. Default: that of the test. */
  seedsMax?: number;
  /** The first of these seeds. Default 1. */
  seedsFrom?: number;
  /** A seed that is known to find it. It is tried first, because the search before it takes most of the time. Default: the first one. */
  foundBy?: number;
  /** The promise that it breaks, as the beginning of a rule in verify.ts. */
  breaks: RegExp;
  edits: readonly SourceEdit[];
};

/** The first seed with dialects, callers and forks (CLIENTS_SEED_MIN of scenario.ts, which loads production code). */
const CLIENTS_SEED = 2_000_000;

/** A work item is done once the end of its turn is stored, and without an item nothing ends a call. */
const ITEMS_DONE_WHEN_STORED: Mutation['edits'] = [
  { file: 'packages/agent/src/serve-agent.ts', from: 'await requireShownEnd(log, job, waiting);', to: 'void waiting;' },
  {
    file: 'services/supervisor/src/lost-items.ts',
    from: 'if (!isGone || signal.aborted) continue;',
    to: 'if (isGone || !isGone) continue;',
  },
];

export const MUTATIONS: Readonly<Record<string, Mutation>> = {
  'calls queued again on takeover': {
    themes: ['worker deaths', 'rolling update'],
    foundBy: 6,
    breaks: /^one attempt of an agent/,
    edits: [
      {
        file: 'services/supervisor/src/call-items.ts',
        from: 'if (workingCall(started) !== undefined || view.ended(name) !== undefined) continue;',
        to: 'if (view.ended(name) !== undefined) continue;',
      },
      {
        file: 'services/supervisor/src/call-items.ts',
        from: 'if (begun !== undefined || !(await this.#isQueued(call))) await this.#request(call);',
        to: 'await this.#request(call);',
      },
      // Without this edit the second item would be refused when it starts.
      {
        file: 'packages/events/src/inputs.ts',
        from: 'return one.item === undefined || other.item === undefined || one.item === other.item;',
        to: 'return true;',
      },
      // Without this edit the second run stops when it begins.
      {
        file: 'packages/agent/src/run-turn.ts',
        from: 'if (hasWritten(newest.record.aggregate, { id: work.call?.id ?? ROOT_AGENT, item, attempt })) throw new Superseded();',
        to: 'void hasWritten;',
      },
    ],
  },
  'a silent call queued again on takeover': {
    themes: ['silent agents'],
    foundBy: 5,
    breaks: /^one attempt of an agent/,
    edits: [
      {
        file: 'services/supervisor/src/call-items.ts',
        from: 'if (workingCall(started) !== undefined || view.ended(name) !== undefined) continue;',
        to: 'if (this.#hasWritten(call) || view.ended(name) !== undefined) continue;',
      },
      {
        file: 'services/supervisor/src/call-items.ts',
        from: 'if (begun !== undefined || !(await this.#isQueued(call))) await this.#request(call);',
        to: 'await this.#request(call);',
      },
    ],
  },
  'a silent call queued again by the next relay': {
    themes: ['silent agents'],
    foundBy: 85,
    breaks: /^one attempt of an agent/,
    edits: [
      {
        file: 'services/relay/src/side-effects.ts',
        from: 'if (isForgotten && (await work.hasItem(item.role, item.work.taskId))) return;',
        to: 'void isForgotten;',
      },
    ],
    // Only a first run that has written nothing yet lets the second one begin.
    seedsMax: 150,
  },
  'calls that a relay of the previous version stores are not queued': {
    themes: ['upgrade from the previous version'],
    breaks: /^everything ends/,
    edits: [
      {
        file: 'services/supervisor/src/call-items.ts',
        from: 'if (begun !== undefined || !(await this.#isQueued(call))) await this.#request(call);',
        to: 'void begun;',
      },
      // The supervisor finds such items some time later, too.
      {
        file: 'services/supervisor/src/lost-items.ts',
        from: 'if (!isGone || signal.aborted) continue;',
        to: 'if (isGone || !isGone) continue;',
      },
    ],
  },
  'a shard without a relay after a lost answer': {
    themes: ['log away'],
    breaks: /^everything ends|^an acknowledged webhook/,
    edits: [
      {
        file: 'packages/log/src/shard-leases/fair-share.ts',
        from: 'const unheld = heldShards.slice(0, shareMax).filter(shard => !held.has(shard));',
        to: 'const unheld: number[] = [];',
      },
      {
        file: 'packages/log/src/shard-leases/shard-leases.ts',
        from: 'tenure.revision = seen.revision;',
        to: "return 'stop';",
      },
    ],
  },
  'a hole after a load': {
    themes: ['retention'],
    foundBy: 3,
    breaks: /^the text of a call/,
    edits: [
      {
        file: 'packages/fold/src/ordinal-deduplicator.ts',
        from: 'return nextN !== undefined && record.n > nextN;',
        to: 'return seen !== undefined && seen.lastSeenOrdinal > 0 && nextN !== undefined && record.n > nextN;',
      },
    ],
  },
  'a producer whose last inputs are removed': {
    themes: ['retention'],
    foundBy: 13,
    breaks: /^everything ends/,
    edits: [
      {
        file: 'services/relay/src/retention-sweep.ts',
        from: 'await this.#endLostWork(tasks, await log.inputs.extent());',
        to: '',
      },
      // Another attempt would complete such a turn.
      ...ITEMS_DONE_WHEN_STORED,
    ],
  },
  'an end that does not fit a record': {
    themes: ['payloads'],
    foundBy: 7,
    breaks: /^everything ends/,
    edits: [
      {
        file: 'packages/task/src/limits.ts',
        from: 'TURN_LANES_BYTES_MAX = 128 * 1024;',
        to: 'TURN_LANES_BYTES_MAX = 1024 ** 3;',
      },
      // A fact that does not fit into a record makes its task fail. Without that rule and the limit, the shard keeps repeating the end.
      {
        file: 'services/relay/src/task-appender.ts',
        from: 'return error instanceof RecordTooLarge || error instanceof TypeError || error instanceof RangeError;',
        to: 'return error === undefined;',
      },
    ],
  },
  'a log that lost its tail is believed': {
    themes: ['lost facts'],
    breaks: /^everything ends|^a failure has a cause|^an acknowledged webhook|^an acknowledged message/,
    edits: [
      {
        file: 'services/relay/src/stored-records.ts',
        from: "if ((await Promise.all(checks)).includes(true)) throw new HistoryLost('the log lost records that it had acknowledged');",
        to: 'await Promise.all(checks);',
      },
    ],
  },
  'a takeover that trusts the end of a dead owner': {
    themes: ['lost facts'],
    foundBy: 971,
    breaks: /^a viewer/,
    edits: [
      {
        file: 'services/relay/src/stored-records.ts',
        from: 'if (this.#isInDoubt && (leadership',
        to: 'if (false && (leadership',
      },
    ],
  },
  'a viewer of a log that lost its tail': {
    themes: ['lost facts'],
    foundBy: 5,
    breaks: /^everything ends|^a viewer/,
    edits: [
      {
        file: 'packages/log/src/follow.ts',
        from: 'if ((isOlder || this.#replacesKnown(tail)) && (await this.#source.isLost(this.#known, this.#readId()))) throw lost();',
        to: '',
      },
      {
        file: 'packages/log/src/follow.ts',
        from: 'if (live.last > 0 && live.last < this.#known) throw lost();',
        to: '',
      },
      {
        file: 'packages/log/src/follow.ts',
        from: 'if (first.lostAfter !== undefined || first.generation - before > TASK_EVENTS_MAX) throw lost();',
        to: '',
      },
      {
        file: 'packages/a2a-server/src/feed/task-feed.ts',
        from: "if (!this.#follows(stored)) throw new HistoryLost('a record does not follow the one before it');",
        to: '',
      },
    ],
  },
  'the end of another stream group': {
    themes: ['groups'],
    foundBy: 47,
    breaks: /^everything ends|^a viewer|^an acknowledged|^a stored cancel|^a repeated notification|^notifications/,
    edits: [
      {
        file: 'services/relay/src/shard.ts',
        from: 'return (await this.#context.inputs.extent()).ofShard(this.index).lastSeq;',
        to: 'return (await this.#context.inputs.extent()).ofShard(0).lastSeq;',
      },
    ],
  },
  'a late write of the index': {
    themes: ['late writes'],
    foundBy: 41,
    // Only a few runs fence a relay between its write of a fact and that of the index.
    seedsMax: 250,
    breaks: /^the index shows/,
    edits: [
      {
        file: 'services/relay/src/index-writes.ts',
        from: 'const put = () => this.#put(taskId, entry);',
        to: 'const put = () => this.#tasks.put(taskId, entry);',
      },
    ],
  },
  'a superseded attempt acknowledges the work item': {
    themes: ['frozen path and a death'],
    seedsMax: 250,
    foundBy: 96,
    breaks: /^everything ends/,
    edits: ITEMS_DONE_WHEN_STORED,
  },
  'a superseded supervisor keeps its work item': {
    themes: ['frozen path and a death'],
    // Siblings queue the items of a dead worker again, so few runs need the supervisor to notice.
    seedsMax: 250,
    foundBy: 33,
    breaks: /^everything ends/,
    edits: [
      {
        file: 'services/supervisor/src/supervise.ts',
        from: 'requireNewest(record.record.aggregate, producer);',
        to: '',
      },
      // If the newer attempt has no fact, its item shows that it runs.
      {
        file: 'services/supervisor/src/lost-inputs.ts',
        from: 'if (await isTakenOver().catch(() => false)) throw new Superseded();',
        to: '',
      },
    ],
  },
  'a third of the acknowledged cancels is lost': {
    themes: ['none', 'deaths'],
    foundBy: 2,
    breaks: /^a stored cancel/,
    edits: [
      {
        file: 'packages/task/src/decide-client.ts',
        from: "if (isTerminal(aggregate.state)) return reject('terminal');\n  const facts",
        to: "if (isTerminal(aggregate.state)) return reject('terminal');\n  if (aggregate.taskId.charCodeAt(13) % 3 === 0) return reject('no change');\n  const facts",
      },
    ],
  },
  'cancels are refused while input is required': {
    themes: ['none', 'deaths'],
    foundBy: 12,
    breaks: /^a stored cancel/,
    edits: [
      {
        file: 'packages/task/src/decide-client.ts',
        from: "if (isTerminal(aggregate.state)) return reject('terminal');\n  const facts",
        to: "if (isTerminal(aggregate.state) || aggregate.state === 'TASK_STATE_INPUT_REQUIRED') return reject('terminal');\n  const facts",
      },
    ],
  },
  'an agent that receives no cancel': {
    themes: ['none', 'deaths'],
    foundBy: 2,
    breaks: /^after an acknowledged cancel/,
    edits: [
      {
        file: 'packages/agent/src/task-watch.ts',
        from: 'if (isTerminal(aggregate.state)) return TASK_ENDED;',
        to: "if (isTerminal(aggregate.state) && aggregate.state !== 'TASK_STATE_CANCELED') return TASK_ENDED;",
      },
    ],
  },
  'a step that returns before its result is a fact': {
    themes: ['stored steps'],
    foundBy: 64,
    breaks: /^a step whose result is stored|^every attempt gets/,
    edits: [{ file: 'packages/agent/src/stored-steps.ts', from: '      await promise;', to: '      resolve();' }],
  },
  'a repeated call that gets its stored failure again': {
    themes: ['stored steps'],
    foundBy: 3,
    breaks: /^a step that is open again/,
    edits: [
      {
        file: 'packages/agent/src/stored-steps.ts',
        from: 'else if (this.#passed.delete(key)) this',
        to: 'else if (this.#passed.size < 0) this',
      },
    ],
  },
  'a followed task is shown to another caller': {
    themes: ['none'],
    seedsFrom: CLIENTS_SEED,
    breaks: /^no caller learns of the task of another/,
    edits: [
      {
        file: 'packages/a2a-server/src/feed/task-feeds.ts',
        from: 'if (cached.feed.aggregate !== undefined) this.#assertVisible(cached.feed.aggregate, caller);',
        to: 'void caller;',
      },
    ],
  },
  'a fork that is not cut at its cursor': {
    themes: ['none'],
    seedsFrom: CLIENTS_SEED,
    breaks: /^a fork continues its origin from the cursor/,
    edits: [
      {
        file: 'packages/context-history/src/read-context-history.ts',
        from: 'if (isVisible(fact) && fact.generation >= generation) return turns.cut();',
        to: 'void isVisible;',
      },
    ],
  },
  'a client of April 2025 gets the form of A2A 0.3': {
    themes: ['none'],
    seedsFrom: CLIENTS_SEED,
    foundBy: 2_000_002,
    breaks: /^a viewer sees what the log has|^a response shows the task/,
    edits: [
      {
        file: 'packages/a2a-server/src/operations/task-response.ts',
        from: 'if (context.ambiguous !== true || !isLegacy) return context.dialect;',
        to: 'if (context.ambiguous === true || !isLegacy) return context.dialect;',
      },
    ],
  },
  'an acknowledgement that counts for all records of its write': {
    themes: ['gathered writes'],
    foundBy: 5,
    breaks: /^a failure has a cause|^the text of a call/,
    edits: [
      {
        file: 'packages/log/src/text-pace.ts',
        from: '  #due: (() => void)[] = [];\n',
        to: `  #due: (() => void)[] = [];
  #joint: { atMs: number; appends: Promise<{ seq: number; duplicate: boolean }>[] } = { atMs: -1, appends: [] };

  async acknowledged(append: Promise<{ seq: number; duplicate: boolean }>): Promise<{ seq: number; duplicate: boolean }> {
    const atMs = performance.now();
    if (this.#joint.atMs !== atMs) this.#joint = { atMs, appends: [] };
    const { appends } = this.#joint;
    appends.push(append);
    await undefined;
    return Promise.race(appends);
  }
`,
      },
      {
        file: 'packages/log/src/input-writer.ts',
        from: 'const { seq, duplicate } = await this.#inputs.append(taskId, record, {',
        to: 'const acknowledged = pace ? (one: ReturnType<InputLog["append"]>) => pace.acknowledged(one) : (one: ReturnType<InputLog["append"]>) => one;\n    const { seq, duplicate } = await acknowledged(this.#inputs.append(taskId, record, {',
      },
      {
        file: 'packages/log/src/input-writer.ts',
        from: '      waitsForRoom: true,\n      ...(trace && { trace }),\n    });',
        to: '      waitsForRoom: true,\n      ...(trace && { trace }),\n    }));',
      },
      // A record of another task would count as a record of another run.
      {
        file: 'packages/log/src/input-writer.ts',
        from: 'if (duplicate && !(await this.#isStoredAt(seq, record))) throw new Superseded();',
        to: 'void duplicate;',
      },
    ],
  },
  'a poison record': {
    themes: ['payloads'],
    foundBy: 9,
    breaks: /^a process crashed|^everything ends|^only its client/,
    edits: [
      {
        file: 'packages/events/src/decode-input.ts',
        from: 'if (!isObject(value)) return ',
        to: 'if (isObject(value)) return value as unknown as InputRecord;\n  if (!isObject(value)) return ',
      },
    ],
  },
};

/** Applies a mutation to the modules that are loaded from now on. Loading such a module throws if a text does not occur exactly once. */
export function mutate(name: string): void {
  const mutation = MUTATIONS[name];
  if (mutation === undefined) throw new Error(`--mutation must be one of: ${Object.keys(MUTATIONS).join('; ')}`);
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context);
      const edits = mutation.edits.filter(({ file }) => url.startsWith('file:') && fileURLToPath(url).endsWith(file));
      if (edits.length === 0) return loaded;
      return { ...loaded, source: editedSource(Buffer.from(loaded.source as Uint8Array).toString(), edits) };
    },
  });
}
