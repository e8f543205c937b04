import type { Audit, Percentiles, ProducerActivity, TaskTrace, VisibleEvent } from '@hopline/task-audit';

/** A trace for people: what each one said, what clients were shown and when, how long text was held. Numbers and names, never text. */
export function traceLines({
  taskId,
  contextId,
  state,
  traces,
  producers: said,
  events: shown,
  heldMs,
  ageMs,
}: TaskTrace): string[] {
  const chunks = shown.filter(({ chunk }) => chunk !== undefined);
  return [
    `task ${taskId} ${state}, ${shown.at(-1)?.generation ?? 0} events in ${seconds(shown.at(-1)?.atMs ?? 0)}; context ${contextId}`,
    ...traces.map(id => `trace ${id}`),
    '',
    'said',
    ...said.map(saidLine),
    '',
    'shown',
    ...shown.map(shownLine),
    '',
    `relay: ${chunks.length} chunks; oldest token held ${spread(heldMs)}; ${spread(ageMs)} old when stored`,
  ];
}

function saidLine({
  id,
  agent,
  turn,
  attempt,
  otherEvents: events,
  tokens,
  characters,
  firstMs,
  lastMs,
  gapMsMax,
  appendMs: sayMs,
}: ProducerActivity): string {
  const who = id === agent ? id : `${agent} (${id})`;
  const what = `${tokens} tokens, ${characters} characters, ${events} other events`;
  const when = `from ${seconds(firstMs)} to ${seconds(lastMs)}, longest gap ${gapMsMax} ms`;
  return `  ${who}, turn ${turn}, attempt ${attempt}: ${what}; ${when}; acknowledged after ${spread(sayMs)}`;
}

function shownLine({ generation, atMs, name: what, characters, append, last, agent, chunk }: VisibleEvent): string {
  const marks = [append ? '+' : '', last ? '.' : ''].join('');
  const from = agent === undefined ? '' : ` of ${agent}`;
  const size = characters > 0 ? `, ${characters} characters` : '';
  const why = chunk && `, ${chunk.tokens} tokens, ${chunk.reason}, held ${chunk.heldMs} ms, ${chunk.ageMs} ms old`;
  return `  ${String(generation).padStart(5)} ${seconds(atMs).padStart(10)}  ${what}${marks}${from}${size}${why ?? ''}`;
}

/** In minus out minus merged minus dropped, for each kind that was said. */
export function booksLines({ tallies, chunks, mergedTokens: merged, unaccounted, differing, incomplete }: Audit): string[] {
  const lines = Object.entries(tallies)
    .filter(([, { received: said }]) => said > 0)
    .map(([kind, { received: said, accepted, duplicates: repeated, pending: waiting, rejected: dropped }]) => {
      const why = Object.entries(dropped).map(([reason, count]) => `${count} dropped (${reason})`);
      const parts = [`${accepted} accepted`, ...why, ...(repeated > 0 ? [`${repeated} repeated`] : [])];
      if (waiting > 0) parts.push(`${waiting} waiting`);
      if (kind === 'text') parts.push(`${chunks} chunks out, ${merged} merged`);
      const lost = unaccounted[kind as keyof typeof unaccounted] ?? 0;
      return `  ${kind}: ${said} in, ${parts.join(', ')}${lost === 0 ? '' : `, ${lost} UNACCOUNTED`}`;
    });
  const verdict = incomplete
    ? 'inputs are gone by retention: nothing can be said about what is missing'
    : differing.length > 0
      ? `DIFFERENT TEXT in ${differing.join(', ')}`
      : 'every text stands as it was said';
  return ['', 'books', ...lines, `  ${verdict}`];
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(3)} s`;
}

function spread({ count, p50, p99, max }: Percentiles): string {
  return count === 0 ? 'nothing' : `p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`;
}
