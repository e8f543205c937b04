import { HOPS } from '../../packages/telemetry/src/hops.ts';
import { METRICS } from '../../packages/telemetry/src/metric-registry.ts';
import { markdownTable } from './markdown-table.ts';

const INTRO = `# Hops

Generated from \`packages/telemetry/src/hops.ts\` by \`node test/repo/write-reference.ts\`. Do not edit by hand.

Where a task's time goes. Each hop begins where the previous one ends, so for an agent's first text the hops from \`accept\` to \`socket\` add up
to \`hopline.time_to_first_token\`, and for every chunk those from \`publish\` to \`socket\` to \`hopline.chunk.duration\`. All are the metric
\`hopline.hop.duration\`, in seconds, with the label \`hop\`, and \`agent\` where one is known.

Times are taken from the clocks of the processes named and of NATS: on several machines a hop between two of them includes their difference,
and a negative one counts as 0. A redelivered work item is not counted in \`work_queue\`, \`plan\`, \`agent_queue\` or \`agent\`.
`;

const CRITICAL_PATH = `## The cost of a hop

is its share of the critical path: the time in which nothing else delayed the end of the turn. \`hopline trace\`, \`hopline why\`, the console and the
[audit](task-audit.md) follow that path from the end of a turn back to the question. While an agent talks, the chunks of its earlier tokens are
published, held and appended at the same time, so only the last of them has a share.

Relays measure the paths of a sample of the turns that end, from the log: \`hopline.path.time\` has the seconds by hop and agent, and \`hopline.path.turns\`
how many turns were measured. \`hopline top\` and the dashboards rank hops by it. Sums of \`hopline.hop.duration\` are not costs, because hops of that metric
overlap. The path has these parts as well, which \`hopline.hop.duration\` does not count:
`;

const TRACE = 'trace';

/** The text of docs/reference/hops.md. */
export function hopsDocument(): string {
  const rows = HOPS.filter(({ measured }) => measured !== TRACE).map(({ name, from, to, measured, per, meaning }) => [
    `\`${name}\``,
    from,
    to,
    METRICS.hopDuration.unit,
    per,
    measured,
    meaning,
  ]);
  const traced = HOPS.filter(({ measured }) => measured === TRACE).map(({ name, from, to, meaning }) => [
    `\`${name}\``,
    from,
    to,
    meaning,
  ]);
  const measuredTable = markdownTable([['Hop', 'From', 'To', 'Unit', 'Per', 'Measured by', 'Meaning'], ...rows]);
  return `${INTRO}\n${measuredTable}\n${CRITICAL_PATH}\n${markdownTable([['Hop', 'From', 'To', 'Meaning'], ...traced])}`;
}
