import { stateWord, TASK_STATES } from '@hopline/a2a';
import type { TaskVerdict } from '@hopline/replay';
import { firstDifference } from './first-difference.ts';

/** `side`: which of the two compared facts; the stored one is the first. */
type VerdictLine = { text: string; side?: 'first' | 'second' };

/** The verdict on a task whose inputs were decided again. It contains no text of the task. */
export function verdictLines(verdict: TaskVerdict, name: string): VerdictLine[] {
  switch (verdict.verdict) {
    case 'same':
      return [];
    case 'expired':
      return [{ text: `${name}: not verified: ${verdict.reason}` }];
    case 'differs':
      return [
        { text: `${name}: differs (${verdict.level})` },
        ...differenceLines(verdict).map(line => ({ ...line, text: `  ${line.text}` })),
      ];
    case 'failed':
    case 'unreadable':
      return [{ text: `${name}: ${verdict.verdict}: ${verdict.reason}` }];
  }
}

type Difference = Extract<TaskVerdict, { verdict: 'differs' }>;

function differenceLines({ what, inputSeq, factSeq, expected, got, before, aggregateMember }: Difference): VerdictLine[] {
  if (inputSeq === undefined) return [{ text: what ?? 'the answer differs' }];
  const { state, turn, generation } = before ?? { generation: 0 };
  const place = factSeq === undefined ? 'after the newest record' : `in record ${factSeq}`;
  const found = firstDifference(expected, got);
  const beforeText = state === undefined ? 'no task' : `${stateOf(state)}, turn ${turn}`;
  return [
    { text: `input ${inputSeq}, ${place}; before: ${beforeText}, generation ${generation}` },
    { text: `stored:  ${expected === undefined ? 'nothing' : nameOf(expected)}`, side: 'first' },
    { text: `decided: ${got === undefined ? 'nothing' : nameOf(got)}`, side: 'second' },
    // If there is no path, one of the two facts is missing, which the lines above already show.
    ...(found === undefined || found.path.length === 0
      ? []
      : [{ text: `differs in ${found.path.join('.')}: ${shownValue(found.a)} is stored, ${shownValue(found.b)} decided` }]),
    ...(aggregateMember === undefined ? [] : [{ text: `the stored aggregate differs in ${aggregateMember}` }]),
    ...(what === undefined ? [] : [{ text: what }]),
  ];
}

function stateOf(state: string): string {
  const found = TASK_STATES.find(one => one === state);
  return found === undefined ? state : stateWord(found);
}

function nameOf(fact: NonNullable<Difference['expected']>): string {
  const more = [
    'generation' in fact && `generation ${fact.generation}`,
    'lane' in fact && `lane ${fact.lane}`,
    'call' in fact && fact.call !== undefined && `call ${fact.call}`,
    fact.kind === 'status.changed' && stateOf(fact.event.statusUpdate.status.state),
  ].filter(part => part !== false);
  return [fact.kind, ...more].join(', ');
}

/** Prints a value only if it cannot be text of the task. */
function shownValue(value: unknown): string {
  if (typeof value === 'string') return `a text of ${value.length} characters`;
  return typeof value === 'object' ? 'an object' : String(value ?? 'nothing');
}
