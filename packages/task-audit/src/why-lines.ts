import type { EventExplanation, ExplainedInput } from './explain.ts';
import type { TracedChunk } from './trace.ts';
import { stepName, stepText } from './traced-steps.ts';
import { costLabel, duration, plural, TAKEOVER_CAUSES } from './waterfall.ts';

/** An explanation as text, in the order of time. `timeOfDay`: an epoch time in milliseconds as a person reads it. */
export function whyLines(explanation: EventExplanation, timeOfDay: (ms: number) => string): string[] {
  const { taskId, cursor, generation, seq, kind, name, startedAt, atMs, storedMs, chunk } = explanation;
  const at = (ms: number) => `${timeOfDay(startedAt + ms)} (${(ms / 1_000).toFixed(3)} s)`;
  return [
    `event ${generation} of task ${taskId}, cursor ${cursor}: ${kind === 'artifact' ? `artifact ${name}` : name}${markOf(explanation)}`,
    ...producerLines(explanation),
    ...stepLines(explanation),
    ...inputLines(explanation, at),
    ...(chunk === undefined ? [] : chunkLines(chunk, at)),
    `  append began ${at(atMs)}`,
    `  stored ${storedMs === undefined ? 'at an unknown time: its facts were copied forward' : `${at(storedMs)}, after ${duration(storedMs - atMs)}`}, as record ${seq} of the log`,
    ...relayLines(explanation, at),
    ...togetherLine(explanation),
    ...pathLines(explanation),
    '  what follows is not recorded: splice, socket, webhook',
  ];
}

function markOf({ append, last, characters, kind }: EventExplanation): string {
  if (kind !== 'artifact') return '';
  const marks = [...(append ? ['appended'] : ['begins or replaces']), ...(last ? ['the last of its artifact'] : [])];
  return `, ${plural(characters, 'character')}, ${marks.join(', ')}`;
}

function producerLines({ producer }: EventExplanation): string[] {
  if (producer === undefined) return [];
  const { id, agent, turn, attempt } = producer;
  return [`  producer ${agent}${id === agent ? '' : ` (${id})`}, turn ${turn}, attempt ${attempt}`];
}

/** Steps that are listed, the newest ones. */
const STEPS_LISTED_MAX = 20;

function stepLines({ steps = [] }: EventExplanation): string[] {
  if (steps.length === 0) return [];
  const more = steps.length - STEPS_LISTED_MAX;
  return [
    `  after ${plural(steps.length, 'step')} of its attempt:`,
    ...(more > 0 ? [`    ${more} earlier`] : []),
    ...steps.slice(-STEPS_LISTED_MAX).map(step => `    ${stepName(step)}: ${stepText(step)}`),
  ];
}

function inputLines({ inputs, inputCount, kind }: EventExplanation, at: (ms: number) => string): string[] {
  if (inputs.length === 0)
    return [
      `  made of no input that is still stored: ${kind === 'status' ? 'the relay decided it, or ' : ''}retention has removed it, or the task was imported`,
    ];
  const more = inputCount - inputs.length;
  return [
    `  made of ${plural(inputCount, 'record')} of inputs:`,
    ...inputs.map(input => `    ${inputText(input, at)}`),
    ...(more > 0 ? [`    and ${more} more`] : []),
  ];
}

function inputText({ seq, writer, kinds, tokens, atMs, storedMs }: ExplainedInput, at: (ms: number) => string): string {
  const content = tokens === 0 ? kinds.join(', ') : `${kinds.join(', ')}, ${plural(tokens, 'token')}`;
  return `${seq} of ${writer}: ${content}; created ${at(atMs)}, stored after ${duration(Math.max(0, storedMs - atMs))}`;
}

/** Why the coalescer releases text (packages/coalesce). */
const RELEASE_REASONS: Readonly<Record<string, string>> = {
  each: 'coalescing is off: each token is an event',
  first: 'it is the first text of its artifact, which never waits',
  producer: 'its producer had held it by the same rule',
  ready: 'no token was expected soon enough to wait for it',
  quiet: 'the expected token did not arrive in time',
  delay: 'the delay of the held tokens had reached the cost of an event',
  age: 'its oldest token had been held as long as allowed',
  size: 'it had reached the largest size of a chunk',
  boundary: 'an event that is not text followed',
  close: 'its artifact ended',
};

function chunkLines(chunk: TracedChunk, at: (ms: number) => string): string[] {
  const { tokens, reason, firstMs, lastMs, publishMs, heldMs, waitMs, appendMs, ageMs } = chunk;
  const why = RELEASE_REASONS[reason];
  return [
    `  ${plural(tokens, 'token')}, the first created ${at(firstMs)}, the last ${at(lastMs)}`,
    `  publish ${duration(publishMs)}: until the relay had read its oldest token`,
    `  hold ${duration(heldMs)}: released because ${why === undefined ? `of ${reason}` : `${why} (${reason})`}`,
    `  wait_for_append ${duration(waitMs)}: ${waitMs === 0 ? 'no append was in flight' : 'the previous append was in flight'}`,
    ...(appendMs === undefined ? [] : [`  append ${duration(appendMs)}`]),
    `  its oldest token was ${duration(ageMs)} old when the append began`,
  ];
}

/** The event's time since the question. An ingress of an earlier version does not report it. */
function pathLines({ path = [] }: Partial<Pick<EventExplanation, 'path'>>): string[] {
  if (path.length === 0) return [];
  const parts = path.map(
    part => `${costLabel(part)}${part.name === undefined ? '' : ` ${part.name}`} ${duration(part.toMs - part.fromMs)}`,
  );
  const wholeMs = path.at(-1)!.toMs - path[0]!.fromMs;
  return [`  ${duration(wholeMs)} after the question of its turn: ${parts.join(', ')}`];
}

function relayLines({ relay, takeover }: EventExplanation, at: (ms: number) => string): string[] {
  const name = relay ?? 'unknown';
  if (takeover === undefined) return [`  folded by relay ${name}`];
  const cause = TAKEOVER_CAUSES[takeover.cause] ?? takeover.cause;
  return [`  folded by relay ${name}, which had taken the task over at ${at(takeover.atMs)}: ${cause}`];
}

function togetherLine({ storedWith }: EventExplanation): string[] {
  return storedWith.length === 0
    ? []
    : [`  in one record with event${storedWith.length === 1 ? '' : 's'} ${storedWith.join(', ')}`];
}
