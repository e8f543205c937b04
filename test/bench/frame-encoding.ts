import { DIALECTS, type StreamResponse } from '@hopline/a2a';
import { frameEncoder } from '@hopline/a2a-grpc';
import { interleave } from './measure/rounds.ts';
import { spreadOf } from './measure/spread.ts';
import { figure, SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import type { Finding, Question } from './question.ts';

const ROUNDS = { full: 9, quick: 5, tiny: 1 } as const;
/** Frames of one measurement, which takes some tens of milliseconds. */
const FRAMES = { full: 20_000, quick: 20_000, tiny: 100 } as const;
/** Target for the cost of a frame of any form, as a multiple of that of JSON 1.0. */
const RATIO_MAX = 2;
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
