import type { TaskReport, VisibleEvent } from '@hopline/task-audit';

export const STARTED_AT = Date.parse('2026-11-22T14:00:00.000Z');

const PERCENTILES = { count: 1, p50: 1, p99: 2, max: 2 };

const chunkEvent = (generation: number, atMs: number): VisibleEvent => ({
  generation,
  seq: generation + 10,
  atMs,
  storedMs: atMs + 3,
  name: 'response',
  characters: 4,
  append: true,
  last: false,
  agent: 'argocd',
  turn: 1,
  producer: 'call-1-1',
  attempt: 2,
  chunk: {
    tokens: 2,
    reason: 'ready',
    firstSeq: generation,
    lastSeq: generation + 1,
    firstMs: atMs - 30,
    lastMs: atMs - 20,
    publishMs: 4,
    heldMs: 25,
    waitMs: 1,
    appendMs: 3,
    ageMs: 30,
  },
});

/** The report of a task of 10 s: an agent with a tool, a repeated attempt, a takeover and two gaps. */
export function taskReport(chunks: number, more: Partial<TaskReport> = {}): TaskReport {
  const supervisor = { id: 'supervisor', agent: 'supervisor', turn: 1, attempt: 1 };
  const call = { id: 'call-1-1', agent: 'argocd', turn: 1 };
  const numbers = { otherEvents: 1, tokens: 0, characters: 0, gapMsMax: 0, appendMs: PERCENTILES, tools: [] };
  const status = { characters: 0, append: false, last: false, turn: 1 };
  const texts = Array.from({ length: chunks }, (_, index) => chunkEvent(index + 2, 5_100 + Math.floor((index * 3_000) / chunks)));
  const lookUp = { name: 'look_up', fromMs: 60, ms: 40 };
  return {
    taskId: 't',
    contextId: 'c',
    state: 'completed',
    startedAt: STARTED_AT,
    traces: ['a'.repeat(32)],
    turns: [
      {
        turn: 1,
        fromMs: 0,
        toMs: 10_002,
        path: [
          { hop: 'accept', fromMs: 0, toMs: 50 },
          { hop: 'agent', fromMs: 50, toMs: 60, agent: 'argocd' },
          { hop: 'tool', fromMs: 60, toMs: 100, agent: 'argocd', name: 'look_up' },
          { hop: 'agent', fromMs: 100, toMs: 200, agent: 'argocd' },
          { hop: 'redelivery', fromMs: 200, toMs: 4_000, agent: 'argocd' },
          { hop: 'agent', fromMs: 4_000, toMs: 5_070, agent: 'argocd' },
          { hop: 'talk', fromMs: 5_070, toMs: 8_100, agent: 'argocd' },
          { hop: 'compose', fromMs: 8_100, toMs: 10_000, agent: 'supervisor' },
          { hop: 'append', fromMs: 10_000, toMs: 10_002 },
        ],
      },
    ],
    costs: [
      { hop: 'redelivery', agent: 'argocd', ms: 3_800, share: 3_800 / 10_002 },
      { hop: 'talk', agent: 'argocd', ms: 3_030, share: 3_030 / 10_002 },
      { hop: 'compose', agent: 'supervisor', ms: 1_900, share: 1_900 / 10_002 },
    ],
    chunkHops: [
      { hop: 'publish', count: chunks, p50: 4, p99: 4, max: 4 },
      { hop: 'hold', count: chunks, p50: 25, p99: 25, max: 25 },
    ],
    notRecorded: ['splice', 'socket', 'webhook'],
    hops: [
      { hop: 'accept', turn: 1, fromMs: 0, toMs: 12, ms: 12 },
      { hop: 'agent', turn: 1, fromMs: 50, toMs: 200, ms: 110, agent: 'argocd', producer: 'call-1-1' },
      { hop: 'tool', turn: 1, fromMs: 60, toMs: 100, ms: 40, agent: 'argocd', producer: 'call-1-1', name: 'look_up' },
    ],
    relays: [
      { relay: 'relay-1-aaaaaaaa', fromGeneration: 1, records: 3, fromMs: 10 },
      { relay: 'relay-2-bbbbbbbb', fromGeneration: 2, records: 9, fromMs: 5_100, takeover: { atMs: 4_900, cause: 'lost' } },
    ],
    gaps: [{ fromMs: 10, toMs: 5_100, generation: 2, cause: 'takeover' }],
    producers: [
      { ...supervisor, ...numbers, queuedMs: 12, takenMs: 20, firstMs: 25, lastMs: 9_900, endMs: 9_900 },
      {
        ...call,
        ...numbers,
        attempt: 1,
        tokens: 1,
        characters: 1,
        firstMs: 200,
        lastMs: 200,
        firstTokenMs: 200,
        lastTokenMs: 200,
        tools: [lookUp],
      },
      {
        ...call,
        ...numbers,
        attempt: 2,
        cause: 'redelivery',
        tokens: 2 * chunks,
        characters: 4 * chunks,
        takenMs: 4_000,
        firstTokenMs: 5_070,
        lastTokenMs: 8_100,
        firstMs: 5_070,
        lastMs: 8_100,
        endMs: 8_100,
      },
    ],
    events: [
      { generation: 1, seq: 11, atMs: 10, storedMs: 12, name: 'task', ...status },
      ...texts,
      { generation: chunks + 2, seq: chunks + 12, atMs: 10_000, storedMs: 10_002, name: 'completed', ...status },
    ],
    heldMs: { ...PERCENTILES, count: chunks },
    ageMs: { ...PERCENTILES, count: chunks },
    audit: { taskId: 't', tallies: {}, chunks, mergedTokens: chunks, unaccounted: {}, differing: [], incomplete: false } as never,
    ...more,
  };
}
