import { DIALECTS, type StreamResponse } from '@hopline/a2a';
import { frameEncoder } from '@hopline/a2a-grpc';
import { RunEncoder } from '../../packages/ag-ui/src/index.ts';
import { messageOf } from '../../packages/durable-streams-http/src/stream-message.ts';
import { ChatEncoder, ResponseEncoder } from '../../packages/openai-api/src/index.ts';
import { TurnEncoder } from '../../packages/ui-message-stream/src/index.ts';
import { interleave } from './measure/rounds.ts';
import { spreadOf } from './measure/spread.ts';
import { figure, SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import type { Finding, Question } from './question.ts';

const ROUNDS = { full: 9, quick: 5, tiny: 1 } as const;
/** Frames of one measurement, which takes some tens of milliseconds. */
const FRAMES = { full: 20_000, quick: 20_000, tiny: 100 } as const;
/** Target for the cost of a frame of any form, as a multiple of that of JSON 1.0. */
const RATIO_MAX = 2;
/** Target for the cost of a frame of another protocol, as a multiple of that of JSON 1.0. */
const PROTOCOL_RATIO_MAX = 1.2;
/** Frames of one stream of another protocol, whose encoder keeps the text of its task. */
const STREAM_FRAMES = 500;
/** Characters of a chunk: a few coalesced tokens, and a page. */
const TEXT_CHARS = [40, 4_000] as const;

type Form = { name: string; encode(event: StreamResponse): string | Uint8Array };

const FORMS: Form[] = [
  ...Object.values(DIALECTS).map(dialect => ({
    name: `JSON ${dialect.name}`,
    encode: (event: StreamResponse) => dialect.frameText(dialect.encodeEvent(event, 0)),
  })),
  ...[DIALECTS['1.0'], DIALECTS['0.3']].map(dialect => ({
    name: `gRPC ${dialect.name}`,
    encode: (event: StreamResponse) => frameEncoder(dialect).encode(event, 0, 1),
  })),
];

/** Cost of encoding one artifact chunk for the wire, paid once per fact and form for any number of clients. */
export const frameEncoding: Question = {
  name: 'encoding',
  async ask(size) {
    const findings: Finding[] = [];
    for (const chars of TEXT_CHARS) findings.push(await measure(chunkOf(chars), chars, ROUNDS[size], FRAMES[size]));
    for (const chars of TEXT_CHARS) findings.push(await measureProtocols(chars, ROUNDS[size], FRAMES[size] / STREAM_FRAMES));
    return findings;
  },
};

async function measure(event: StreamResponse, chars: number, rounds: number, frames: number): Promise<Finding> {
  const peers = Object.fromEntries(FORMS.map(form => [form.name, async () => microsecondsOf(form, event, frames)]));
  // The first round includes compilation.
  await interleave(1, peers);
  const found = await interleave(rounds, peers);
  const first = found[FORMS[0]!.name]!;
  const ratioOf = (name: string) => spreadOf(found[name]!.map((value, round) => value / first[round]!));
  return {
    title: `encoding: one artifact chunk of ${chars} characters, microseconds a frame`,
    table: {
      columns: ['form', 'bytes', ...SPREAD_COLUMNS, `x ${FORMS[0]!.name}`],
      rows: FORMS.map(form => {
        const cells = spreadCells(spreadOf(found[form.name]!));
        return [form.name, String(Buffer.byteLength(form.encode(event))), ...cells, figure(ratioOf(form.name).median)];
      }),
    },
    targets: FORMS.slice(1).map(({ name }) => ({
      name: `a frame of ${chars} characters, ${name} over ${FORMS[0]!.name}`,
      wanted: { atMost: RATIO_MAX },
      found: ratioOf(name),
    })),
  };
}

type StreamItem = { event: StreamResponse; cursor: string };
/** Begins the stream of a task in a protocol; returns the frames of an item. */
type Protocol = { name: string; begin(): (item: StreamItem) => string };

const sse = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;
const frames = (events: readonly unknown[]) => events.map(sse).join('');
const json10 = DIALECTS['1.0'];

/** The encoders as ingress uses them, without the connection. */
const PROTOCOLS: Protocol[] = [
  {
    name: 'A2A 1.0',
    begin:
      () =>
      ({ event, cursor }) =>
        `id: ${cursor}\ndata: ${json10.frameText(json10.encodeEvent(event, 0))}\n\n`,
  },
  {
    name: 'AI SDK',
    begin: () => {
      const turn = new TurnEncoder({ messageId: 'm' });
      return item => frames(turn.add(item));
    },
  },
  {
    name: 'AG-UI',
    begin: () => {
      const run = new RunEncoder({ threadId: 'c', runId: 'r', messages: [], state: {}, turn: 1 });
      return item => frames(run.add(item, { isStored: false }));
    },
  },
  {
    name: 'chat completions',
    begin: () => {
      const chat = new ChatEncoder({ model: 'm' });
      return item => frames(chat.add(item));
    },
  },
  {
    name: 'responses',
    begin: () => {
      const response = new ResponseEncoder({ taskId: TASK, turn: 1 });
      return item => frames(response.add(item));
    },
  },
  {
    name: 'Durable Streams',
    begin:
      () =>
      ({ event }) =>
        `event: data\ndata: [${messageOf(event, 1)}]\n\n`,
  },
];

/** Cost of a frame in the stream of a task, by protocol. */
async function measureProtocols(chars: number, rounds: number, streams: number): Promise<Finding> {
  const items = streamOf(chars);
  const peers = Object.fromEntries(PROTOCOLS.map(one => [one.name, async () => microsecondsOfStreams(one, items, streams)]));
  await interleave(1, peers);
  const found = await interleave(rounds, peers);
  const first = found[PROTOCOLS[0]!.name]!;
  const ratioOf = (name: string) => spreadOf(found[name]!.map((value, round) => value / first[round]!));
  return {
    title: `encoding: a stream of chunks of ${chars} characters by protocol, microseconds of CPU a frame`,
    table: {
      columns: ['protocol', ...SPREAD_COLUMNS, `x ${PROTOCOLS[0]!.name}`],
      rows: PROTOCOLS.map(({ name }) => [name, ...spreadCells(spreadOf(found[name]!)), figure(ratioOf(name).median)]),
    },
    targets: PROTOCOLS.slice(1).map(({ name }) => ({
      name: `a frame of ${chars} characters, ${name} over ${PROTOCOLS[0]!.name}`,
      wanted: { atMost: PROTOCOL_RATIO_MAX },
      found: ratioOf(name),
    })),
  };
}

function microsecondsOfStreams({ name, begin }: Protocol, items: readonly StreamItem[], streams: number): number {
  const started = process.cpuUsage();
  let length = 0;
  for (let n = 0; n < streams; n += 1) {
    const encode = begin();
    for (const item of items) length += encode(item).length;
  }
  if (length < items.length) throw new Error(`${name} encodes to nothing`);
  const { user, system } = process.cpuUsage(started);
  return (user + system) / (items.length * Math.ceil(streams));
}

const TASK = '01936f3e-7a10-7c21-a5b2-0123456789ab';

function streamOf(chars: number): StreamItem[] {
  const ids = { taskId: TASK, contextId: 'c' };
  const chunk = chunkOf(chars);
  if (!('artifactUpdate' in chunk)) throw new Error('the event is not a chunk');
  const { artifact } = chunk.artifactUpdate;
  const begun: StreamResponse[] = [
    { task: { id: TASK, contextId: 'c', status: { state: 'TASK_STATE_SUBMITTED' } } },
    { statusUpdate: { ...ids, status: { state: 'TASK_STATE_WORKING' } } },
  ];
  const chunks = Array.from({ length: STREAM_FRAMES }, (_, index): StreamResponse => {
    return { artifactUpdate: { ...ids, artifact, append: index > 0, lastChunk: false } };
  });
  return [...begun, ...chunks].map((event, index) => ({ event, cursor: `${index + 1}.${index + 100}` }));
}

function microsecondsOf({ name, encode }: Form, event: StreamResponse, frames: number): number {
  const started = performance.now();
  let length = 0;
  for (let n = 0; n < frames; n += 1) length += encode(event).length;
  if (length === 0) throw new Error(`${name} encodes to nothing`);
  return ((performance.now() - started) * 1000) / frames;
}

const PHRASE = 'the “quick” brown fox — 42 €\n';

function chunkOf(chars: number): StreamResponse {
  const artifact = {
    artifactId: crypto.randomUUID(),
    name: 'streaming_result',
    description: 'Streaming result from Platform Engineer',
    parts: [{ text: PHRASE.repeat(Math.ceil(chars / PHRASE.length)).slice(0, chars) }],
    metadata: { sourceAgent: 'argocd', toolCallId: 'call-1-1' },
  };
  const [taskId, contextId] = [crypto.randomUUID(), crypto.randomUUID()];
  return { artifactUpdate: { taskId, contextId, artifact, append: true, lastChunk: false } };
}
