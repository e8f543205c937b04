import type { Audit, Percentiles, ProducerActivity, TaskTrace, VisibleEvent } from '@hopline/task-audit';

/**
 * A trace as text: the inputs of each producer, the events that clients received, how long text was held. Numbers and names,
 * never text.
 */
export function traceLines({ taskId, contextId, state, traces, producers, events, heldMs, ageMs }: TaskTrace): string[] {
  const chunks = events.filter(({ chunk }) => chunk !== undefined);
  const last = events.at(-1);
  return [
    `task ${taskId} ${state}, ${last?.generation ?? 0} events in ${seconds(last?.atMs ?? 0)}; context ${contextId}`,
    ...traces.map(id => `trace ${id}`),
    '',
    'producers',
    ...producers.map(producerLine),
    '',
    'events',
    ...events.map(eventLine),
    '',
    `relay: ${chunks.length} chunks; oldest token held ${spread(heldMs)}; ${spread(ageMs)} old when stored`,
  ];
}

function producerLine(producer: ProducerActivity): string {
  const { id, agent, turn, attempt, tokens, characters, otherEvents, firstMs, lastMs, gapMsMax, appendMs } = producer;
  const name = id === agent ? id : `${agent} (${id})`;
  const content = `${tokens} tokens, ${characters} characters, ${otherEvents} other events`;
  const times = `from ${seconds(firstMs)} to ${seconds(lastMs)}, longest gap ${gapMsMax} ms`;
  return `  ${name}, turn ${turn}, attempt ${attempt}: ${content}; ${times}; acknowledged after ${spread(appendMs)}`;
}

function eventLine({ generation, atMs, name, characters, append, last, agent, chunk }: VisibleEvent): string {
  const marks = [append ? '+' : '', last ? '.' : ''].join('');
  const from = agent === undefined ? '' : ` of ${agent}`;
  const size = characters > 0 ? `, ${characters} characters` : '';
  const origin = chunk && `, ${chunk.tokens} tokens, ${chunk.reason}, held ${chunk.heldMs} ms, ${chunk.ageMs} ms old`;
  return `  ${String(generation).padStart(5)} ${seconds(atMs).padStart(10)}  ${name}${marks}${from}${size}${origin ?? ''}`;
}

/** For each kind of input: received, accepted, rejected, merged and unaccounted. */
export function auditLines({ tallies, chunks, mergedTokens, unaccounted, differing, incomplete }: Audit): string[] {
  const lines = Object.entries(tallies)
    .filter(([, { received }]) => received > 0)
    .map(([kind, { received, accepted, duplicates, pending, rejected }]) => {
      const reasons = Object.entries(rejected).map(([reason, count]) => `${count} rejected (${reason})`);
      const parts = [`${accepted} accepted`, ...reasons, ...(duplicates > 0 ? [`${duplicates} duplicates`] : [])];
      if (pending > 0) parts.push(`${pending} pending`);
      if (kind === 'text') parts.push(`${chunks} chunks out, ${mergedTokens} merged`);
      const lost = unaccounted[kind as keyof typeof unaccounted] ?? 0;
      return `  ${kind}: ${received} in, ${parts.join(', ')}${lost === 0 ? '' : `, ${lost} UNACCOUNTED`}`;
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
