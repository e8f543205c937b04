import type { Audit, Percentiles, ProducerActivity, TaskTrace, VisibleEvent } from '@hopline/task-audit';

/**
 * A trace as text: the inputs of each producer, the events that clients received, how long text was held. Numbers and names,
 * never text.
 */
export function traceLines({ taskId, contextId, state, traces, said, shown, heldMs, ageMs }: TaskTrace): string[] {
  const chunks = shown.filter(({ chunk }) => chunk !== undefined);
  return [
    `task ${taskId} ${state}, ${shown.at(-1)?.generation ?? 0} events in ${seconds(shown.at(-1)?.atMs ?? 0)}; context ${contextId}`,
    ...traces.map(id => `trace ${id}`),
    '',
    'producers',
    ...said.map(producerLine),
    '',
    'events',
    ...shown.map(eventLine),
    '',
    `relay: ${chunks.length} chunks; oldest token held ${spread(heldMs)}; ${spread(ageMs)} old when stored`,
  ];
}

function producerLine({
  id,
  agent,
  turn,
  attempt,
  events,
  tokens,
  characters,
  firstMs,
  lastMs,
  gapMsMax,
  sayMs,
}: ProducerActivity): string {
  const name = id === agent ? id : `${agent} (${id})`;
  const what = `${tokens} tokens, ${characters} characters, ${events} other events`;
  const when = `from ${seconds(firstMs)} to ${seconds(lastMs)}, longest gap ${gapMsMax} ms`;
  return `  ${name}, turn ${turn}, attempt ${attempt}: ${what}; ${when}; acknowledged after ${spread(sayMs)}`;
}

function eventLine({ generation, atMs, what, characters, append, last, agent, chunk }: VisibleEvent): string {
  const marks = [append ? '+' : '', last ? '.' : ''].join('');
  const from = agent === undefined ? '' : ` of ${agent}`;
  const size = characters > 0 ? `, ${characters} characters` : '';
  const why = chunk && `, ${chunk.tokens} tokens, ${chunk.why}, held ${chunk.heldMs} ms, ${chunk.ageMs} ms old`;
  return `  ${String(generation).padStart(5)} ${seconds(atMs).padStart(10)}  ${what}${marks}${from}${size}${why ?? ''}`;
}

/** For each kind of input: received, accepted, rejected, merged and unaccounted. */
export function auditLines({ tallies, chunks, merged, unaccounted, differing, incomplete }: Audit): string[] {
  const lines = Object.entries(tallies)
    .filter(([, { said }]) => said > 0)
    .map(([kind, { said, accepted, repeated, waiting, dropped }]) => {
      const why = Object.entries(dropped).map(([reason, count]) => `${count} rejected (${reason})`);
      const parts = [`${accepted} accepted`, ...why, ...(repeated > 0 ? [`${repeated} duplicates`] : [])];
      if (waiting > 0) parts.push(`${waiting} pending`);
      if (kind === 'text') parts.push(`${chunks} chunks out, ${merged} merged`);
      const lost = unaccounted[kind as keyof typeof unaccounted] ?? 0;
      return `  ${kind}: ${said} in, ${parts.join(', ')}${lost === 0 ? '' : `, ${lost} UNACCOUNTED`}`;
    });
  const verdict = incomplete
    ? 'inputs have expired: missing inputs cannot be determined'
    : differing.length > 0
      ? `DIFFERENT TEXT in ${differing.join(', ')}`
      : 'all text is complete and unchanged';
  return ['', 'audit', ...lines, `  ${verdict}`];
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(3)} s`;
}

function spread({ count, p50, p99, max }: Percentiles): string {
  return count === 0 ? 'none' : `p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`;
}
