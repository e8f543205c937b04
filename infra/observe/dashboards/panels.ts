/** Grafana dashboards as data: panels of few kinds, laid out in rows from left to right. */

/** Units of Grafana that the dashboards use. */
export type Unit = 's' | 'ops' | 'reqps' | 'short' | 'percentunit' | 'bytes' | 'Bps' | 'none';

export type Query = { expr: string; legend: string };

export type Panel = {
  kind: 'timeseries' | 'stat' | 'bargauge' | 'table' | 'heatmap' | 'jaeger' | 'tempo' | 'text';
  title: string;
  /** Explains to an operator what the panel shows, and when to act. */
  description: string;
  unit: Unit;
  queries: readonly Query[];
  /** Width in columns; a row has 24. */
  width: number;
  /** Value from which the panel turns red. */
  redFrom?: number;
  stacked?: boolean;
  /** Text of a `text` panel, or the query of a `jaeger` or `tempo` panel. */
  content?: string;
};

export type Row = { title: string; panels: readonly Panel[] };

export type Variable = { name: string; label: string } & ({ query: string } | { text: string });

export type Dashboard = {
  uid: string;
  title: string;
  description: string;
  variables: readonly Variable[];
  rows: readonly Row[];
};

type Details = Omit<Panel, 'kind' | 'title' | 'description' | 'unit' | 'queries' | 'width'> & { width?: number };

const queriesOf = (queries: string | Record<string, string>): Query[] =>
  typeof queries === 'string'
    ? [{ expr: queries, legend: '' }]
    : Object.entries(queries).map(([legend, expr]) => ({ expr, legend }));

const panel =
  (kind: Panel['kind'], width: number) =>
  (title: string, description: string, unit: Unit, queries: string | Record<string, string>, details: Details = {}): Panel => ({
    kind,
    title,
    description,
    unit,
    queries: queriesOf(queries),
    width,
    ...details,
  });

export const graph = panel('timeseries', 8);
export const stat = panel('stat', 4);
export const bars = panel('bargauge', 8);
export const table = panel('table', 12);

/** Quantile of a histogram over the range that Grafana chooses, one series for each value of `by`. */
export function quantile(q: number, metric: string, { by = '', where = '' } = {}): string {
  const labels = by === '' ? 'le' : `le, ${by}`;
  return `histogram_quantile(${q}, sum by (${labels}) (rate(${metric}_bucket{${selector(where)}}[$__rate_interval])))`;
}

export function rate(metric: string, { by = '', where = '' } = {}): string {
  const sum = by === '' ? 'sum' : `sum by (${by})`;
  return `${sum} (rate(${metric}{${selector(where)}}[$__rate_interval]))`;
}

/** Number of events in the shown range. */
export function total(metric: string, { by = '', where = '' } = {}): string {
  const sum = by === '' ? 'sum' : `sum by (${by})`;
  return `${sum} (increase(${metric}{${selector(where)}}[$__range]))`;
}

/** The ten largest numbers of events in the shown range. */
export function largest(metric: string, by: string, where = ''): string {
  return `topk(10, ${total(metric, { by, where })})`;
}

/** The query of `largest` in the form that a panel has: the labels name the bars. */
export function ranked(metric: string, labels: readonly string[], where = ''): Record<string, string> {
  return { [labels.map(label => `{{${label}}}`).join(' ')]: largest(metric, labels.join(', '), where) };
}

export function sum(metric: string, { by = '', where = '' } = {}): string {
  return `${by === '' ? 'sum' : `sum by (${by})`} (${metric}{${selector(where)}})`;
}

/** Every query is limited to the clusters that the dashboard shows. */
function selector(where: string): string {
  return where === '' ? 'job=~"$job"' : `job=~"$job", ${where}`;
}
