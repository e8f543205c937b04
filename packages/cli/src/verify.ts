import { stateWord, TASK_STATES } from '@hopline/a2a';
import type { TaskVerdict } from '@hopline/replay';
import type { Output } from '@hopline/terminal';
import { EXIT, type ExitCode } from './exit-code.ts';
import { storedTasks, type TaskSources } from './stored-tasks.ts';

export type VerifyCommand = TaskSources & { output: Output; json: boolean };

/** `hopline verify`: decides the inputs of stored tasks again, and prints what differs and the counts. */
export async function verify(command: VerifyCommand): Promise<ExitCode> {
  const { output, json, all, signal } = command;
  const { verifyTask } = await import('@hopline/replay');
  const counts = { tasks: 0, same: 0, differs: 0, failed: 0, unreadable: 0, expired: 0 };
  for await (const { task, name } of storedTasks('verify', command)) {
    const verdict = verifyTask(task);
    counts.tasks += 1;
    counts[verdict.verdict] += 1;
    if (json) output.line(JSON.stringify(verdict));
    else if (verdict.verdict !== 'expired' || !all) for (const line of verdictLines(verdict, name)) output.line(line);
  }
  if (signal.aborted) return EXIT.interrupted;
  output.line(json ? JSON.stringify(counts) : countsLine(counts));
  const { differs, failed, unreadable, expired } = counts;
  return differs + failed + unreadable === 0 && (all || expired === 0) ? EXIT.ok : EXIT.failed;
}

function countsLine({ tasks, same, differs, failed, unreadable, expired }: Record<string, number>): string {
  const verified = `${tasks} ${tasks === 1 ? 'task' : 'tasks'}: ${same} same, ${differs} differ, ${failed} failed, ${unreadable} unreadable`;
  return expired === 0 ? verified : `${verified}, ${expired} not verified because the log lacks a part of them`;
}

/** What differs, without the text of the task. */
function verdictLines(verdict: TaskVerdict, name: string): string[] {
  switch (verdict.verdict) {
    case 'same':
      return [];
    case 'expired':
      return [`${name}: not verified: ${verdict.reason}`];
    case 'differs':
      return [`${name}: differs (${verdict.level})`, ...differenceLines(verdict).map(line => `  ${line}`)];
    case 'failed':
    case 'unreadable':
      return [`${name}: ${verdict.verdict}: ${verdict.reason}`];
  }
}

type Difference = Extract<TaskVerdict, { verdict: 'differs' }>;

function differenceLines({ what, inputSeq, factSeq, expected, got, before, aggregateMember }: Difference): string[] {
  if (inputSeq === undefined) return [what ?? 'the answer differs'];
  const { state, turn, generation } = before ?? { generation: 0 };
  const place = factSeq === undefined ? 'after the newest record' : `in record ${factSeq}`;
  const path = firstDifference(expected, got);
  return [
    `input ${inputSeq}, ${place}; before: ${state === undefined ? 'no task' : `${stateOf(state)}, turn ${turn}`}, generation ${generation}`,
    `stored:  ${expected === undefined ? 'nothing' : nameOf(expected)}`,
    `decided: ${got === undefined ? 'nothing' : nameOf(got)}`,
    ...(path === undefined ? [] : [`differs in ${path}`]),
    ...(aggregateMember === undefined ? [] : [`the stored aggregate differs in ${aggregateMember}`]),
    ...(what === undefined ? [] : [what]),
  ];
}

function stateOf(state: string): string {
  const found = TASK_STATES.find(one => one === state);
  return found === undefined ? state : stateWord(found);
}

type Fact = NonNullable<Difference['expected']>;

function nameOf(fact: Fact): string {
  const more = [
    'generation' in fact && `generation ${fact.generation}`,
    'lane' in fact && `lane ${fact.lane}`,
    'call' in fact && fact.call !== undefined && `call ${fact.call}`,
    fact.kind === 'status.changed' && stateOf(fact.event.statusUpdate.status.state),
  ].filter(part => part !== false);
  return [fact.kind, ...more].join(', ');
}

/** The first member with different values, and the values where they cannot be text of the task. */
function firstDifference(expected: unknown, got: unknown, path: string[] = []): string | undefined {
  if (typeof expected === 'object' && typeof got === 'object' && expected !== null && got !== null) {
    for (const name of new Set([...Object.keys(expected), ...Object.keys(got)])) {
      const found = firstDifference((expected as never)[name], (got as never)[name], [...path, name]);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  if (expected === got || path.length === 0) return undefined;
  return `${path.join('.')}: ${shownValue(expected)} is stored, ${shownValue(got)} decided`;
}

function shownValue(value: unknown): string {
  if (typeof value === 'string') return `a text of ${value.length} characters`;
  return typeof value === 'object' ? 'an object' : String(value ?? 'nothing');
}
