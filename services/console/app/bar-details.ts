import type { ProducerActivity, TaskReport } from '@hopline/task-audit';
import { stepName, type TracedStep } from '@hopline/task-audit/traced-steps';
import { costLabel, duration, percent, plural, type WaterfallRow } from '@hopline/task-audit/waterfall';
import { visibleText } from './plain-text.ts';

/** The meaning of one bar of the time line, in sentences. `atMs`: the time of the event that it leads to. */
export type BarDetails = { key: string; title: string; sentences: string[]; fromMs: number; atMs: number };

const span = (fromMs: number, toMs: number) =>
  `From ${duration(fromMs)} to ${duration(toMs)} after the question: ${duration(toMs - fromMs)}.`;

/** A sentence for the hops that a task usually has; docs/reference/hops.md describes all. */
const MEANINGS: Readonly<Record<string, string>> = {
  accept: 'Ingress stored the question, and a relay made the task of it.',
  'work queue': 'The work waited for a free supervisor.',
  plan: 'The supervisor decided which agent answers.',
  'agent queue': 'The work waited for a free worker of the agent.',
  agent: 'The agent worked, and had not written anything yet.',
  tool: 'A tool of the agent ran.',
  step: 'The code of the agent came to a step, whose result the log keeps for later attempts.',
  text: 'The agent wrote its text.',
  attempt: 'The work was repeated: the attempt before this one did not end.',
  takeover: 'Another relay continued the task.',
  gap: 'No event was stored in this time.',
};

export function hopDetails(row: WaterfallRow, report: TaskReport, key: string): BarDetails {
  const { kind, label, fromMs, toMs, note } = row;
  const { costs } = report;
  const failure = rowFailureOf(row, report);
  const title = visibleText(label.replaceAll('_', ' '));
  const meaning = Object.entries(MEANINGS).find(([name]) => title.startsWith(name))?.[1];
  const cost = costs.find(one => costLabel(one) === label);
  return {
    key,
    title,
    fromMs,
    atMs: toMs,
    sentences: [
      ...(failure === undefined ? [] : [visibleText(failure)]),
      ...(meaning === undefined ? [] : [meaning]),
      span(fromMs, toMs),
      ...(kind === 'hop' || kind === 'tool' ? [] : [`${visibleText(note)}.`]),
      ...(cost === undefined
        ? []
        : [
            `Nothing else delayed the end of the turn for ${duration(cost.ms)} of it, ${percent(cost.share)} of the time of the turns.`,
          ]),
    ],
  };
}

/** Why the attempt failed; undefined if it did not fail. `all`: the attempts of the task. */
export function failureOf(
  { id, turn, attempt, state, reason }: ProducerActivity,
  all: readonly ProducerActivity[],
): string | undefined {
  if (state === 'failed' || state === 'rejected') return reason === undefined ? `It ${state}.` : `It ${state}: ${reason}.`;
  const next = all.find(one => one.id === id && one.turn === turn && one.attempt === attempt + 1);
  return state === undefined && next?.cause === 'redelivery'
    ? 'Its worker failed or died, and the work was repeated.'
    : undefined;
}

/** Why the work failed of which a hop or a text is a part; undefined if it did not fail. */
export function rowFailureOf({ kind, label, turn, fromMs, toMs }: WaterfallRow, { producers }: TaskReport): string | undefined {
  if (kind !== 'text' && !(kind === 'hop' && label.startsWith('agent '))) return undefined;
  const ofAgent = producers.filter(one => one.turn === turn && label.endsWith(` ${one.agent}`));
  const failed = ofAgent.find(
    one => one.firstMs <= toMs && (one.endMs ?? one.lastMs) >= fromMs && failureOf(one, producers) !== undefined,
  );
  return failed && failureOf(failed, producers);
}

/** Milliseconds from the start of the work to the first token; undefined without text. */
export function firstTokenOf({ takenMs, firstMs, firstTokenMs }: ProducerActivity): number | undefined {
  return firstTokenMs === undefined ? undefined : Math.max(0, firstTokenMs - (takenMs ?? firstMs));
}

/** Tokens in a second, from the first to the last one; undefined for fewer than two, which have no rate. */
export function rateOf({ tokens, firstTokenMs, lastTokenMs }: ProducerActivity): number | undefined {
  if (firstTokenMs === undefined || lastTokenMs === undefined || lastTokenMs <= firstTokenMs || tokens < 2) return undefined;
  return ((tokens - 1) / (lastTokenMs - firstTokenMs)) * 1_000;
}

export const rateText = (rate: number) => `${rate < 10 ? rate.toFixed(1) : Math.round(rate).toLocaleString('en')} tokens/s`;

export function producerDetails(producer: ProducerActivity, all: readonly ProducerActivity[], key: string): BarDetails {
  const { agent, id, turn, attempt, queuedMs, takenMs, firstMs, lastMs, endMs, tokens, characters, tools, steps = [] } = producer;
  const [fromMs, toMs] = [takenMs ?? firstMs, endMs ?? lastMs];
  const [failure, firstToken, rate] = [failureOf(producer, all), firstTokenOf(producer), rateOf(producer)];
  return {
    key,
    title: `${visibleText(agent)}, turn ${turn}, attempt ${attempt}`,
    fromMs,
    atMs: toMs,
    sentences: [
      ...(failure === undefined ? [] : [visibleText(failure)]),
      ...(id === agent ? [] : [`It is the producer ${visibleText(id)}.`]),
      ...(queuedMs !== undefined && takenMs !== undefined && takenMs > queuedMs
        ? [`Its work waited ${duration(takenMs - queuedMs)} for a free worker.`]
        : []),
      span(fromMs, toMs),
      ...(firstToken === undefined ? [] : [`Its first token came after ${duration(firstToken)}.`]),
      `It wrote ${plural(tokens, 'token')} with ${plural(characters, 'character')}${rate === undefined ? '' : `, ${rateText(rate)}`}.`,
      ...tools.map(
        ({ name, ms, fromMs: at }) => `The tool ${visibleText(name)} ran for ${duration(ms)} from ${duration(at)} on.`,
      ),
      ...stepSentences(steps),
    ],
  };
}

/** Steps that have a sentence of their own. */
const STEP_SENTENCES_MAX = 50;

function stepSentences(steps: readonly TracedStep[]): string[] {
  const more = steps.length - STEP_SENTENCES_MAX;
  return [...steps.slice(0, STEP_SENTENCES_MAX).map(stepSentence), ...(more > 0 ? [`It came to ${more} more steps.`] : [])];
}

function stepSentence(step: TracedStep): string {
  const { outcome, of = 1, isRepeated, fromMs, toMs } = step;
  const name = visibleText(stepName(step));
  if (outcome === 'reused') return `The step ${name} did not run again: its result was taken from attempt ${of}.`;
  if (outcome === 'open') return `The step ${name} began, and no result of it is stored: it may have run.`;
  const ran = `The step ${name} ${outcome === 'ran' ? 'ran' : 'failed'} within ${duration(toMs - fromMs)}`;
  if (isRepeated === true) return `${ran}, and the next attempt ran it again.`;
  return `${ran}, and its ${outcome === 'ran' ? 'result' : 'error'} was stored.`;
}
