import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message, StreamResponse } from '@hopline/a2a';
import { agentPresentation, CAIPE, TRANSPARENT } from '@hopline/profiles';
import fc from 'fast-check';
import { NO_PRIOR_ATTEMPTS } from '../../../packages/agent/src/prior-attempts.ts';
import { isEnd } from '../../../packages/agent/src/pump-events.ts';
import { isRepetition } from '../../../packages/agent/src/repetition.ts';
import { endOf } from '../../../packages/agent/src/turn-end.ts';
import { TurnInputs } from '../../../packages/agent/src/turn-inputs.ts';
import { EventReader } from '../../../packages/agent-a2a/src/event-reader.ts';
import { CUMULATIVE_STEPS, HELD_TEXTS_MAX } from '../../../packages/agent-a2a/src/status-texts.ts';

/** An item that an agent sends: the text of a working status, a chunk of an artifact, or a tool notice. The end may also have a text. */
type Sent = { status: string } | { artifact: string; id: string; append: boolean; last: boolean } | { notice: 'start' | 'end' };
type Script = { sent: readonly Sent[]; end?: string };

const message = (text: string, messageId: string): Message => ({ messageId, role: 'ROLE_AGENT', parts: [{ text }] });
const ids = { taskId: 't', contextId: 'c' };
const statusOf = (state: 'WORKING' | 'COMPLETED', of?: Message): StreamResponse => ({
  statusUpdate: { ...ids, status: { state: `TASK_STATE_${state}`, ...(of && { message: of }) } },
});

function eventOf(sent: Sent, messageId: string): StreamResponse {
  if ('status' in sent) return statusOf('WORKING', message(sent.status, messageId));
  if ('notice' in sent) {
    const text = sent.notice === 'start' ? '🔧 Calling tool: **x**\n' : '✅ Tool **x** completed\n';
    return statusOf('WORKING', message(text, messageId));
  }
  const { artifact, id, append, last } = sent;
  return { artifactUpdate: { ...ids, artifact: { artifactId: id, parts: [{ text: artifact }] }, append, lastChunk: last } };
}

/** The texts of the lanes that a client sees, in order of opening. */
function textsOf({ sent, end }: Script, profile: typeof CAIPE | typeof TRANSPARENT): string[] {
  const reader = new EventReader({ deltas: undefined, text: 'answer', onSkipped: () => {}, onCumulative: () => {} });
  const lanes = new Map<string, string>();
  const replaced = new Set<string>();
  const sink = {
    add(input: { kind: string; lane?: string }) {
      if (input.kind === 'open' && input.lane !== undefined) replaced.add(input.lane);
    },
    addHeld() {},
    token(lane: string, text: string) {
      const before = replaced.delete(lane) ? '' : (lanes.get(lane) ?? '');
      lanes.set(lane, before + text);
    },
  };
  const work = { v: 1 as const, taskId: 't', contextId: 'c', turn: 1, profile: profile.name, message: message('hi', 'm') };
  const presentation =
    profile === CAIPE ? agentPresentation(CAIPE, { name: 'streaming_result' }) : agentPresentation(TRANSPARENT);
  const inputs = new TurnInputs({
    work: { ...work, call: { id: 'call', presentation } },
    agent: 'a',
    attempt: 1,
    sink,
    eventBytesMax: 1_000_000,
    inputBytesMax: 1_000_000,
    prior: NO_PRIOR_ATTEMPTS,
    reportsWork: true,
    repeatsText: true,
    forwardText: true,
  });
  inputs.begin();
  const events = [
    ...sent.map((one, index) => eventOf(one, `m${index}`)),
    statusOf('COMPLETED', end === undefined ? undefined : message(end, 'end')),
  ];
  for (const event of events) {
    reader.read(event);
    for (const read of reader.take()) {
      if (isEnd(read)) inputs.end(endOf(read));
      else inputs.take(read);
    }
  }
  return [...lanes].filter(([lane]) => !lane.includes('/tool/')).map(([, text]) => text);
}

const answerOf = (script: Script) => textsOf(script, CAIPE).join('');

const deltas = (tokens: readonly string[]): Sent[] => tokens.map(status => ({ status }));
const chunks = (id: string, tokens: readonly string[]): Sent[] =>
  tokens.map((artifact, index) => ({ artifact, id, append: index > 0, last: index === tokens.length - 1 }));
const whole = (id: string, artifact: string): Sent => ({ artifact, id, append: false, last: true });
const prefixes = (tokens: readonly string[]) => tokens.map((_token, index) => tokens.slice(0, index + 1).join(''));

/** Tokens as models send them: repeated tokens, spaces, and parts that mean nothing by themselves. */
const token = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('ha', 'ha', ' ', '\n', '-', 'ok', '👩‍🚀', '漢', '\r\n') },
  fc.string({ unit: 'grapheme', maxLength: 8 }),
);
const tokensOf = fc.array(token, { minLength: 1, maxLength: 20 });
const splitOf = (text: string) =>
  fc
    .array(fc.nat(text.length), { maxLength: 6 })
    .map(cuts => [0, ...cuts.toSorted((a, b) => a - b), text.length])
    .map(cuts => cuts.slice(1).map((cut, index) => text.slice(cuts[index], cut)));

/** Whether the tokens are a long text followed by the same text in one token. This is read as a repetition, although both may be meant. */
function repeatsItself(tokens: readonly string[]): boolean {
  let sent = '';
  for (const one of tokens) {
    if (one === sent && isRepetition(one)) return true;
    sent += one;
  }
  return false;
}

/** Whether statuses that are pieces look like cumulative texts, each of which contains the previous one. */
function looksCumulative(tokens: readonly string[]): boolean {
  const texts = tokens.filter(text => text !== '');
  const breakAt = texts.findIndex((text, index) => index > 0 && !text.startsWith(texts[index - 1]!));
  return breakAt < 0 || breakAt > CUMULATIVE_STEPS;
}

type Form = 'statuses' | 'cumulative statuses' | 'one status' | 'chunks' | 'cumulative chunks' | 'one artifact';
type Copy = 'status' | 'artifact' | 'chunks' | 'same artifact' | 'end';

const FORMS: readonly Form[] = ['statuses', 'cumulative statuses', 'one status', 'chunks', 'cumulative chunks', 'one artifact'];
const COPIES: readonly Copy[] = ['status', 'artifact', 'chunks', 'same artifact', 'end'];

function firstOf(form: Form, tokens: readonly string[]): Sent[] {
  const text = tokens.join('');
  switch (form) {
    case 'statuses':
      return deltas(tokens);
    case 'cumulative statuses':
      return deltas(prefixes(tokens));
    case 'one status':
      return [{ status: text }];
    case 'chunks':
      return chunks('first', tokens);
    case 'cumulative chunks':
      return prefixes(tokens).map((artifact, index) => ({
        artifact,
        id: 'first',
        append: false,
        last: index === tokens.length - 1,
      }));
    case 'one artifact':
      return [whole('first', text)];
  }
}

function copyOf(copy: Exclude<Copy, 'end'>, text: string, pieces: readonly string[], index: number): Sent[] {
  if (copy === 'status') return [{ status: text }];
  if (copy === 'artifact') return [whole(`copy ${index}`, text)];
  return copy === 'chunks' ? chunks(`copy ${index}`, pieces) : [whole('first', text)];
}

/** An agent's text, the form in which it sends it, and the forms in which it repeats it, in any order. */
const story = tokensOf.chain(tokens =>
  fc.record({
    tokens: fc.constant(tokens),
    form: fc.constantFrom(...FORMS),
    copies: fc.array(fc.constantFrom(...COPIES), { maxLength: 4 }),
    pieces: splitOf(tokens.join('')),
  }),
);

test('an agent that repeats its answer in any form and order shows it once, byte for byte [S2-2]', () => {
  fc.assert(
    fc.property(story, ({ tokens, form, copies, pieces }) => {
      const text = tokens.join('');
      const inStatuses = form === 'statuses' || form === 'cumulative statuses' || form === 'one status';
      fc.pre(text !== '' && !repeatsItself(tokens));
      // A status that repeats a short text may be a token, so only an artifact or the last message decides.
      fc.pre(isRepetition(text) || !inStatuses || !copies.includes('status'));
      // An artifact in chunks is a separate result if there is another artifact.
      fc.pre(inStatuses || !copies.includes('chunks'));
      if (form === 'statuses') fc.pre(!looksCumulative(tokens));
      if (form === 'cumulative statuses') fc.pre(areCumulative(prefixes(tokens)));
      const sent = firstOf(form, tokens);
      for (const [index, copy] of copies.entries()) if (copy !== 'end') sent.push(...copyOf(copy, text, pieces, index));
      const script = { sent, ...(copies.includes('end') && { end: text }) };
      assert.equal(answerOf(script), text);
      for (const shown of textsOf(script, TRANSPARENT)) assert.equal(shown, text);
    }),
    { numRuns: 3_000 },
  );
});

/** Whether enough texts in a row, from the first one, contain the previous text to count as cumulative. */
function areCumulative(texts: readonly string[]): boolean {
  const held = texts.filter((text, index) => text !== '' && (index === 0 || text !== texts[index - 1])).length;
  return held > CUMULATIVE_STEPS && texts.filter(text => text !== '').length <= HELD_TEXTS_MAX;
}

test('an answer sent both as statuses and as chunks of an artifact is shown once, whichever comes first [S2-2]', () => {
  const sides = fc.record({
    tokens: tokensOf,
    isArtifactFirst: fc.boolean(),
    copies: fc.subarray(['status', 'artifact', 'end']),
  });
  fc.assert(
    fc.property(sides, ({ tokens, isArtifactFirst, copies }) => {
      const text = tokens.join('');
      fc.pre(text !== '' && !repeatsItself(tokens) && !looksCumulative(tokens));
      fc.pre(isRepetition(text) || !copies.includes('status'));
      const beside = chunks('beside', tokens);
      const sent = deltas(tokens).flatMap((status, index) =>
        isArtifactFirst ? [beside[index]!, status] : [status, beside[index]!],
      );
      if (copies.includes('status')) sent.push({ status: text });
      if (copies.includes('artifact')) sent.push(whole('copy', text));
      assert.equal(answerOf({ sent, ...(copies.includes('end') && { end: text }) }), text);
    }),
    { numRuns: 1_000 },
  );
});

test('an agent that works in steps, and repeats the text of each, shows every step once [S2-2]', () => {
  const step = fc.record({ tokens: tokensOf, isRepeated: fc.boolean(), hasTool: fc.boolean() });
  const steps = fc.record({
    steps: fc.array(step, { minLength: 1, maxLength: 4 }),
    ending: fc.constantFrom('none', 'last', 'all'),
  });
  fc.assert(
    fc.property(steps, fc.boolean(), ({ steps, ending }, isArtifact) => {
      const texts = steps.map(({ tokens }) => tokens.join(''));
      const all = texts.join('');
      // A step that repeats the previous one is the same case as `repeatsItself` for tokens.
      fc.pre(texts.every((text, index) => text !== '' && isRepetition(text) && text !== texts[index - 1]));
      fc.pre(steps.every(({ tokens }) => !repeatsItself(tokens)) && !looksCumulative(steps[0]!.tokens));
      const sent = steps.flatMap(({ tokens, isRepeated, hasTool }, index): Sent[] => [
        ...deltas(tokens),
        ...(isRepeated ? [{ status: texts[index]! }] : []),
        ...(hasTool ? ([{ notice: 'start' }, { notice: 'end' }] as const) : []),
      ]);
      const text = ending === 'none' ? undefined : ending === 'all' ? all : texts.at(-1)!;
      if (text !== undefined && isArtifact) sent.push(whole('result', text));
      // If a step without a copy precedes, the status of the next step contains both, so it is not a copy of everything sent so far.
      fc.pre(steps.every(({ isRepeated }, index) => !isRepeated || index === 0 || steps[index - 1]!.isRepeated));
      assert.equal(answerOf({ sent, ...(text !== undefined && !isArtifact && { end: text }) }), all);
    }),
    { numRuns: 1_000 },
  );
});

test('text that an agent intends to repeat is not lost: tokens, lines and whole texts that only resemble a copy', () => {
  fc.assert(
    fc.property(tokensOf, tokens => {
      fc.pre(!repeatsItself(tokens) && !looksCumulative(tokens));
      assert.equal(answerOf({ sent: deltas(tokens) }), tokens.join(''));
    }),
    { numRuns: 1_000 },
  );
  fc.assert(
    fc.property(tokensOf, token, fc.boolean(), (tokens, other, isArtifact) => {
      const text = tokens.join('');
      fc.pre(!repeatsItself(tokens) && !looksCumulative(tokens) && other !== '' && isRepetition(text));
      // The text continues the answer or begins differently; a text that equals the end of the answer is a copy of it.
      const like = `${other}${text}`;
      fc.pre(!text.endsWith(like) && !like.startsWith(text));
      const sent: Sent[] = [
        ...deltas(tokens),
        isArtifact ? { artifact: like, id: 'a', append: false, last: false } : { status: like },
      ];
      assert.equal(answerOf({ sent }), `${text}${like}`);
    }),
    { numRuns: 1_000 },
  );
  assert.equal(answerOf({ sent: deltas(['ok', 'ok']) }), 'okok');
  assert.equal(answerOf({ sent: deltas(['ha', 'ha', 'haha', '!']) }), 'hahahaha!');
  assert.equal(answerOf({ sent: deltas(['-'.repeat(16), '-'.repeat(16), '\n']) }), `${'-'.repeat(32)}\n`);
  assert.equal(answerOf({ sent: deltas(['Row, row.\n', 'Row, row.\n', 'Gently']) }), 'Row, row.\nRow, row.\nGently');
});

test('ambiguous texts are read as the README states', () => {
  const sent = deltas(['Hi', '!']);
  const copy: Sent = { status: 'Hi!' };
  // A short copy counts as a token unless a whole text follows immediately or came earlier.
  assert.equal(answerOf({ sent: [...sent, copy] }), 'Hi!Hi!');
  assert.equal(answerOf({ sent: [...sent, copy], end: 'Hi!' }), 'Hi!');
  assert.equal(answerOf({ sent: [...sent, copy], end: 'Hi!Hi!' }), 'Hi!Hi!');
  assert.equal(answerOf({ sent: [...sent, copy, whole('a', 'Hi!')] }), 'Hi!');
  assert.equal(answerOf({ sent: [...sent, whole('a', 'Hi!'), copy] }), 'Hi!');
  // A long copy in a single status counts as a repetition, unless the whole text contains both copies. A copy in several statuses counts as
  // text.
  const line = 'Row, row, row your boat.\n';
  const refrain = deltas(['Row, row, row ', 'your boat.\n']);
  assert.equal(answerOf({ sent: [...refrain, { status: line }] }), line);
  assert.equal(answerOf({ sent: [...refrain, { status: line }], end: line + line }), line + line);
  assert.equal(answerOf({ sent: [...refrain, ...refrain] }), line + line);
  assert.equal(answerOf({ sent: [{ status: line }, { status: line }] }), line);
});
