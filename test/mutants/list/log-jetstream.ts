import type { Mutant } from '../mutant.ts';

const SHARD_READERS = 'test/integration/log/shard-readers.test.ts';
const LOST_TAILS = 'test/integration/log/lost-tails.test.ts';
const FACTS = 'packages/log-jetstream/src/facts.ts';
const ITEM = 'packages/log-jetstream/src/work-item.ts';
const CODEC_TEST = 'packages/log-jetstream/src/codec.test.ts';
const COMPACT = 'packages/log-jetstream/src/compact-record.ts';
const COMPACT_TEST = 'packages/log-jetstream/src/compact-record.test.ts';
const REQUEUES = 'packages/log-jetstream/src/requeue-counts.ts';
const REQUEUES_TEST = 'packages/log-jetstream/src/requeue-counts.test.ts';
const PUBLISHER = 'packages/log-jetstream/src/publisher.ts';
const PUBLISHER_TEST = 'test/integration/log/publisher.test.ts';
const LOST_DELIVERIES = 'test/integration/log/lost-deliveries.test.ts';
const DEAD_WORKERS = 'test/integration/log/dead-workers.test.ts';
const HOSTILE_TEST = 'test/integration/log/hostile-login.test.ts';
const INPUTS_TEST = 'test/integration/log/inputs.test.ts';
const RELAYED_READS = 'test/integration/log/relayed-reads.test.ts';
const READ_RIGHTS = 'packages/log-jetstream/src/relayed-reads/read-rights.ts';
const READ_SERVICE = 'packages/log-jetstream/src/relayed-reads/read-service.ts';
const FEEDS = 'packages/log-jetstream/src/relayed-reads/feeds.ts';
const BUSY_WORKERS = 'test/integration/log/busy-workers.test.ts';

export const LOG_JETSTREAM_MUTANTS: readonly Mutant[] = [
  {
    name: 'facts are stored without the expected sequence',
    edits: [
      {
        file: 'packages/log-jetstream/src/codec.ts',
        from: 'if (expected !== undefined) encoded',
        to: 'if (expected === 0) encoded',
      },
    ],
    tests: [CODEC_TEST],
  },
  {
    name: 'an append whose acknowledgement was lost conflicts with itself',
    edits: [
      {
        file: FACTS,
        from: 'if (next?.header?.get(MESSAGE_ID) === options.id) return { seq: next.seq, bytes };',
        to: 'void next;',
      },
    ],
    tests: [CODEC_TEST],
  },
  {
    name: 'a write of a bucket whose acknowledgement was lost conflicts with itself',
    edits: [
      {
        file: 'packages/log-jetstream/src/key-value.ts',
        from: 'if (newest?.header?.get(MESSAGE_ID) === id) return newest.seq;',
        to: 'void newest;',
      },
    ],
    tests: [],
  },
  {
    name: 'a watch counts as complete after its first entries',
    edits: [
      {
        file: 'packages/log-jetstream/src/key-value.ts',
        from: 'if (isReady || (position < newest && !idle)) continue;',
        to: 'if (isReady) continue;',
      },
    ],
    tests: [],
    withServer: ['test/integration/log/watch.test.ts'],
  },
  {
    name: 'a view keeps lost entries of a bucket, in whose place there are others',
    edits: [
      {
        file: 'packages/log-jetstream/src/key-value.ts',
        from: 'if (newestRead === undefined) return from;',
        to: 'if (newestRead !== undefined || from > 0) return from;',
      },
    ],
    tests: [],
    withServer: [LOST_TAILS],
  },
  {
    name: 'inputs that are stored in the place of lost ones are not read',
    edits: [
      {
        file: 'packages/log-jetstream/src/shard-readers.ts',
        from: 'if (newest.seq === 0 || newest.seq > lastSeq) return false;',
        to: 'if (newest.seq >= 0) return false;',
      },
    ],
    tests: [],
    withServer: [LOST_TAILS],
  },
  {
    name: 'an ordered reader ignores lost messages',
    edits: [
      {
        file: 'packages/log-jetstream/src/ordered-reader.ts',
        from: 'if (delivery.consumerSeq !== this.#consumerSeq + 1) this.#lose();',
        to: '',
      },
    ],
    tests: [],
    withServer: [LOST_DELIVERIES],
  },
  {
    name: 'a reader that continues repeats its last record',
    edits: [{ file: 'packages/log-jetstream/src/ordered-reader.ts', from: 'from = last.seq + 1;', to: 'from = last.seq;' }],
    tests: [],
    withServer: [LOST_DELIVERIES],
  },
  {
    name: 'the watch of tails ignores lost messages',
    edits: [
      {
        file: 'packages/log-jetstream/src/tail-watch.ts',
        from: 'if (headers?.code !== 100 || (last && Number(last) !== this.#consumerSeq)) this.#isLost = true;',
        to: 'void last;\n    if (headers?.code !== 100) this.#isLost = true;',
      },
    ],
    tests: [],
    withServer: ['test/integration/log/quiet-followers.test.ts'],
  },
  {
    name: 'a quiet follower joins a watch without reading its tail',
    edits: [
      {
        file: 'packages/log-jetstream/src/tail-watch.ts',
        from: 'const tail = await this.#options.newest(follower.subject);',
        to: 'const tail = undefined;',
      },
    ],
    tests: [],
    withServer: ['test/nats-double/quiet-follower.test.ts', 'test/integration/log/quiet-followers.test.ts'],
  },
  {
    name: 'the answer of a deposed leader is believed',
    edits: [
      {
        file: 'packages/log-jetstream/src/leaders.ts',
        from: 'if (!this.#leads(stream)) throw deposed(stream);',
        to: 'void deposed;',
      },
    ],
    tests: [],
    withServer: ['test/nats-double/deposed-leader.test.ts'],
  },
  {
    name: 'a direct get with a lost message counts as whole',
    edits: [
      {
        file: 'packages/log-jetstream/src/direct-gets.ts',
        from: "const isNamed = asked !== 'one' && ",
        to: 'const isNamed = asked === undefined && ',
      },
    ],
    tests: [],
    withServer: [LOST_DELIVERIES],
  },
  {
    name: 'the answer of a replica that is behind is believed',
    edits: [
      {
        file: 'packages/log-jetstream/src/direct-gets.ts',
        from: "while (answer !== 'too many' && answer.upTo < leaderSeq) {",
        to: "while (answer !== 'too many' && answer.upTo < 0) {",
      },
    ],
    tests: [],
    withServer: ['test/integration/log/lagging-replica.test.ts'],
  },
  {
    name: 'a reader waits for the sequences of a stream that was replaced',
    edits: [
      {
        file: 'packages/log-jetstream/src/shard-readers.ts',
        from: 'if (open.next > lastSeq + 1) open.next = open.received + 1;',
        to: 'if (open.next > lastSeq + 1) open.next = lastSeq + 1;',
      },
    ],
    tests: [],
    withServer: [INPUTS_TEST],
  },
  {
    name: 'a shard that shares a consumer receives a message twice',
    edits: [
      {
        file: 'packages/log-jetstream/src/shard-readers.ts',
        from: 'if (open === undefined || seq < open.next) return;',
        to: 'if (open === undefined) return;',
      },
    ],
    tests: [],
    withServer: [SHARD_READERS],
  },
  {
    name: 'a slow shard holds up those that share its consumer',
    edits: [
      {
        file: 'packages/log-jetstream/src/shard-readers.ts',
        from: 'if (this.#shards.size === 1) return open.taken(this.#stop.signal);',
        to: 'if (this.#shards.size > 0) return open.taken(this.#stop.signal);',
      },
    ],
    tests: [],
    withServer: [SHARD_READERS],
  },
  {
    name: 'inputs of a writer count although it may not write them',
    edits: [
      {
        file: 'packages/log-jetstream/src/inputs.ts',
        from: "const record = typeof decoded === 'string' || mayAppend(writer, decoded) ? decoded : 'wrong writer';",
        to: 'const record = decoded;',
      },
    ],
    tests: ['packages/log-jetstream/src/task-subjects.test.ts'],
    withServer: [INPUTS_TEST],
  },
  {
    name: 'an input is lost if another writer has used its id',
    edits: [
      {
        file: 'packages/log-jetstream/src/inputs.ts',
        from: 'return found === null || found.subject === subject;',
        to: 'return found === null || found.subject !== null;',
      },
    ],
    tests: [],
    withServer: [HOSTILE_TEST],
  },
  {
    name: 'an acknowledgement may have any number of tokens',
    edits: [
      {
        file: 'packages/log-jetstream/src/users.ts',
        from: '.*.*.*.*.>`]',
        to: '.>`]',
      },
    ],
    tests: ['packages/log-jetstream/src/users.test.ts'],
  },
  {
    name: 'a full stream counts as one without a leader',
    edits: [
      {
        file: 'packages/log-jetstream/src/ack.ts',
        from: 'if (error.err_code === STORE_FAILED && FULL.test(reason)) return',
        to: 'if (error.err_code === undefined) return',
      },
    ],
    tests: ['packages/log-jetstream/src/ack.test.ts'],
  },
  {
    name: 'a requeue that was counted is counted again',
    edits: [{ file: REQUEUES, from: 'if (before.deliveries >= delivery) return;', to: '' }],
    tests: [REQUEUES_TEST],
  },
  {
    name: 'a delivery that reached no worker counts as an attempt',
    edits: [
      {
        file: REQUEUES,
        from: 'const lost = Math.max(0, delivery - 1 - Math.max(begun, before.deliveries));',
        to: 'const lost = 0;',
      },
    ],
    tests: [REQUEUES_TEST],
  },
  {
    name: 'an item that runs is started again when it is delivered again',
    edits: [{ file: ITEM, from: 'if (running.has(delivery)) {', to: 'if (running.has(delivery) && running.isLost(delivery)) {' }],
    tests: [],
    withServer: [BUSY_WORKERS, DEAD_WORKERS],
  },
  {
    name: 'a worker returns an item that another one has queued again',
    edits: [{ file: ITEM, from: 'if (running.isLost(delivery) || running.isReplaced(delivery)) return;', to: '' }],
    tests: [],
    withServer: [DEAD_WORKERS, 'test/integration/log/frozen-node.test.ts'],
  },
  {
    name: 'the ack of a claimed item is not repeated after it has left its slot',
    edits: [
      { file: ITEM, from: 'if (isConfirmed || !running.isClaimed(delivery)) running', to: 'if (isConfirmed || true) running' },
    ],
    tests: [],
    withServer: [DEAD_WORKERS],
  },
  {
    name: 'claims are not renewed',
    edits: [
      { file: 'packages/log-jetstream/src/running-items.ts', from: 'this.#extend(item);\n      left -= 1;', to: 'left -= 1;' },
    ],
    tests: [],
    withServer: [BUSY_WORKERS, DEAD_WORKERS],
  },
  {
    name: 'a worker judges its siblings right after its own reconnect',
    edits: [
      {
        file: 'packages/log-jetstream/src/dead-workers.ts',
        from: 'this.#count(sibling, nowMs >= this.#judgesAtMs ? elapsedMs : 0);',
        to: 'this.#count(sibling, elapsedMs);',
      },
    ],
    tests: [],
    withServer: [DEAD_WORKERS],
  },
  {
    name: 'a worker forgets another one that starts while it reads the list',
    edits: [
      {
        file: 'packages/log-jetstream/src/dead-workers.ts',
        from: 'for (const worker of known) if (',
        to: 'for (const worker of [...known, ...this.#siblings.keys()]) if (',
      },
    ],
    tests: ['packages/log-jetstream/src/dead-workers.test.ts'],
  },
  {
    name: 'a chunk loses the trace of its last token',
    edits: [{ file: COMPACT, from: '{ ...chunk, firstTrace: trace, lastTrace: trace }', to: '{ ...chunk, firstTrace: trace }' }],
    tests: [COMPACT_TEST],
  },
  {
    name: 'the stored form lacks the turn of a task',
    edits: [{ file: COMPACT, from: '...(turn !== DEFAULTS.turn && { turn }),', to: '' }],
    tests: [COMPACT_TEST],
  },
  {
    name: 'a tenant gets one item more than its limit',
    edits: [
      {
        file: 'packages/log-jetstream/src/work-room.ts',
        from: 'return items < this.#tenantItemsMax ? undefined',
        to: 'return items <= this.#tenantItemsMax ? undefined',
      },
    ],
    tests: [],
    withServer: ['test/integration/log/room.test.ts'],
  },
  {
    name: 'one tenant may take every slot for reading',
    edits: [
      {
        file: 'packages/log-jetstream/src/turn-queue.ts',
        from: 'const mayHave = (party: Party) => party === undefined || this.#takenBy(party) < this.#partySlots;',
        to: 'const mayHave = () => true;',
      },
    ],
    tests: ['packages/log-jetstream/src/turn-queue.test.ts'],
  },
  {
    name: 'the leader of a stream moves back and forth',
    edits: [
      { file: 'packages/log-jetstream/src/leader-placement.ts', from: 'most - 2) return move;', to: 'most - 1) return move;' },
    ],
    tests: ['packages/log-jetstream/src/leader-placement.test.ts'],
  },
  {
    name: 'a relay reads tasks of other owners for an agent of the same conversation',
    edits: [
      {
        file: READ_RIGHTS,
        from: 'if (!isSameOwner(aggregate.owner, target.owner) || aggregate.role !== target.role) return false;',
        to: 'if (aggregate.role !== target.role) return false;',
      },
    ],
    tests: [RELAYED_READS],
  },
  {
    name: 'a relay answers an agent at any subject',
    edits: [{ file: READ_SERVICE, from: 'if (!isOwnInbox(msg.reply)) {', to: 'if (msg.reply === undefined) {' }],
    tests: [RELAYED_READS],
  },
  {
    name: 'a feed has the records of a task that the agent may not read',
    edits: [{ file: FEEDS, from: 'if (!follow.isPermitted && !this.#becomesPermitted(follow, live)) return;', to: '' }],
    tests: [RELAYED_READS],
  },
  {
    name: 'an agent reads again after each text that its feed left out',
    edits: [{ file: FEEDS, from: 'if (passed !== undefined && last === passed.seq) headers', to: 'if (shown < 0) headers' }],
    tests: [RELAYED_READS],
  },
  {
    name: 'a follower does not look up what it missed after a feed was lost',
    edits: [
      { file: 'packages/log-jetstream/src/relayed-reads/followed-tasks.ts', from: '() => this.#missed(),', to: '() => {},' },
    ],
    tests: [RELAYED_READS],
  },
  {
    name: 'a publish is sent again although the server has not read it',
    edits: [
      {
        file: PUBLISHER,
        from: 'if (open.sent) this.#repeatWhenRead();\n        else this.#send(open);',
        to: 'this.#send(open);',
      },
    ],
    tests: [],
    withServer: [PUBLISHER_TEST],
  },
  {
    name: 'publishes in flight are not sent again after a reconnect',
    edits: [
      {
        file: PUBLISHER,
        from: 'for (const open of [...this.#open.values()]) this.#send(open);\n    this.#fill();',
        to: 'this.#fill();',
      },
    ],
    tests: [],
    withServer: [PUBLISHER_TEST],
  },
  {
    name: 'a publish that expired before it was sent takes room in the buffer for good',
    edits: [
      {
        file: PUBLISHER,
        from: 'for (const open of this.#waiting.filter(isLate)) {\n      this.#waitingBytes -= open.payload.length;',
        to: 'for (const open of this.#waiting.filter(isLate)) {',
      },
    ],
    tests: [],
    withServer: [PUBLISHER_TEST],
  },
  {
    name: 'a lost delivery ends a pull only with its time',
    edits: [{ file: 'packages/log-jetstream/src/ordered-reader.ts', from: 'void this.#inbox?.close();', to: '' }],
    tests: [],
    withServer: [LOST_DELIVERIES],
  },
  {
    name: 'a worker that could not read the list of workers does not read it again',
    edits: [
      {
        file: 'packages/log-jetstream/src/dead-workers.ts',
        from: 'this.#listedAtMs = Number.NEGATIVE_INFINITY;\n      throw error;',
        to: 'throw error;',
      },
    ],
    tests: ['packages/log-jetstream/src/dead-workers.test.ts'],
  },
  {
    name: 'a deposed leader is asked whether a call has an item',
    edits: [
      {
        file: 'packages/log-jetstream/src/work.ts',
        from: 'const read = () => leaders.read(names.workStream, info);',
        to: 'void leaders;\n      const read = info;',
      },
    ],
    tests: [],
    withServer: ['test/nats-double/deposed-leader.test.ts'],
  },
  {
    name: 'a read is sent although its caller no longer waits',
    edits: [
      {
        file: 'packages/log-jetstream/src/turn-queue.ts',
        from: 'return isLate ? late.promise : task();',
        to: 'void isLate;\n      return task();',
      },
    ],
    tests: ['packages/log-jetstream/src/turn-queue.test.ts', 'packages/log-jetstream/src/read-slots.test.ts'],
  },
  {
    name: 'a delivery that was requeued is counted a second time as lost',
    edits: [{ file: REQUEUES, from: 'delivery - 1 - Math.max(begun, before.deliveries)', to: 'delivery - 1 - begun' }],
    tests: [REQUEUES_TEST],
  },
  {
    name: 'a new delivery of a claimed item counts as claimed',
    edits: [
      {
        file: 'packages/log-jetstream/src/running-items.ts',
        from: "this.#items.set(delivery.seq, { delivery, takenAtMs, state: 'unclaimed' });",
        to: "this.#items.set(delivery.seq, { delivery, takenAtMs, state: this.#find(delivery)?.state ?? 'unclaimed' });",
      },
    ],
    tests: ['packages/log-jetstream/src/running-items.test.ts'],
    withServer: [LOST_DELIVERIES, DEAD_WORKERS],
  },
  {
    name: 'a page of a history waits for its turn without a limit',
    edits: [
      {
        file: 'packages/log-jetstream/src/history-reader.ts',
        from: '{ ms: REQUEST_TIMEOUT_MS,',
        to: '{ ms: 1_000 * REQUEST_TIMEOUT_MS,',
      },
    ],
    tests: ['packages/log-jetstream/src/history-reader.test.ts'],
  },
  {
    name: 'a relay that reads for an agent is silent until it has the answer',
    edits: [{ file: READ_SERVICE, from: "this.#connection.send(this.#reply, '');", to: '' }],
    tests: [],
    withServer: [RELAYED_READS],
  },
  {
    name: 'a part of the answer to an earlier try does not delay the next one',
    edits: [
      {
        file: 'packages/log-jetstream/src/retry.ts',
        from: 'this.#send(() => this.#repeatTimer?.refresh())',
        to: 'this.#send(() => {})',
      },
    ],
    tests: ['packages/log-jetstream/src/retry.test.ts'],
  },
];
