import { A2AError, type JsonObject } from '@hopline/a2a';
import { type Cursor, parseCursor } from '@hopline/events';
import type { EventExplanation, ExplainedInput, TracedChunk } from '@hopline/task-audit';
import { costLabel, duration, plural, TAKEOVER_CAUSES } from '@hopline/task-audit/waterfall';
import { timeOfDay } from '@hopline/telemetry/log-line';
import { noticePrinter } from '@hopline/terminal';
import { type CommandContext, command } from '../command/command.ts';
import { EXIT, type ExitCode } from '../command/exit-code.ts';
import { NATS, undefinedForInvalidId, withLog } from '../command/open-log.ts';
import { pair } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';
import { inReportForm } from './in-report-form.ts';

export const why = command({
  name: 'why',
  subject: pair('TASK CURSOR', 'one task id and the cursor of one of its events'),
  summary: 'explains one event of a task: where it comes from, and where its time went',
  details:
    'the records it was made of, its producer and attempt, how long it was held and why it was released, when it was stored and by which relay; ' +
    'numbers and names, never text',
  options: { nats: NATS },
  notes: 'A cursor is the `id:` of an SSE frame; `hopline ask --json` and `hopline follow --json` print it with every event.',
  async run({ subject: [taskId, given], options }, context) {
    const { generation } = cursorOf(given);
    if (!options.nats) {
      const { client, signal, output } = context;
      return show(await client.explain(taskId, given, { signal, onNotice: noticePrinter(output) }), context);
    }
    // Loaded on demand: the other commands need no broker.
    const { explainEvent } = await import('@hopline/task-audit');
    return await withLog(context.environment, 'hopline-why', async log => {
      if ((await log.facts.last(taskId).catch(undefinedForInvalidId)) === undefined) throw new A2AError('TASK_NOT_FOUND');
      const explanation = await explainEvent(log, taskId, { generation });
      if (explanation === undefined)
        throw new A2AError('INVALID_PARAMS', { detail: `the task has no event of generation ${generation}` });
      return show(explanation, context);
    });
  },
});

function cursorOf(text: string): Cursor {
  const cursor = parseCursor(text);
  if (cursor === undefined)
    throw new UsageError('a cursor has the form 17.42, as `hopline follow --json` prints it; see hopline why --help');
  return cursor;
}

function show(received: JsonObject | EventExplanation, { json, output }: Pick<CommandContext, 'json' | 'output'>): ExitCode {
  const lines = json ? [JSON.stringify(received)] : inReportForm(() => whyLines(received as EventExplanation));
  for (const line of lines) output.line(line);
  return EXIT.ok;
}

/** An explanation as text, in the order of time. */
export function whyLines(explanation: EventExplanation): string[] {
  const { taskId, cursor, generation, seq, kind, name, startedAt, atMs, storedMs, chunk } = explanation;
  const at = (ms: number) => `${timeOfDay(startedAt + ms)} (${(ms / 1_000).toFixed(3)} s)`;
  return [
    `event ${generation} of task ${taskId}, cursor ${cursor}: ${kind === 'artifact' ? `artifact ${name}` : name}${markOf(explanation)}`,
    ...producerLines(explanation),
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

/** Its time since the question. An ingress of an earlier version does not report it. */
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
