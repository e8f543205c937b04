import type { Dashboard, Panel, Row, Variable } from './panels.ts';

/** Grafana 9 reads this version of the model; later versions migrate it when they load it. */
const SCHEMA_VERSION = 37;
const COLUMNS = 24;
const PANEL_HEIGHT = 8;
const STAT_HEIGHT = 4;
const PROMETHEUS = { type: 'prometheus', uid: '$datasource' };
/** Data sources of traces. A Grafana has one of them or both; the variables name it. */
const TRACES = {
  jaeger: { title: 'Jaeger', datasource: { type: 'jaeger', uid: '$jaeger' } },
  tempo: { title: 'Tempo', datasource: { type: 'tempo', uid: '$tempo' } },
} as const;
type TraceStore = keyof typeof TRACES;
const TRACE_STORES = ['jaeger', 'tempo'] as const satisfies readonly TraceStore[];
/** Path of the runbook in the repository. The chart replaces it with an address. */
const RUNBOOK = 'infra/RUNBOOK.md';
/** The alert to whose section a description refers. */
const ALERT = /RUNBOOK, (Hopline\w+)/;

type Json = { [name: string]: unknown };

/** The JSON model of a dashboard, as Grafana provisions it from a file. */
export function grafanaJson(dashboard: Dashboard): Json {
  const { uid, title, description, variables, rows } = dashboard;
  return {
    uid,
    title,
    description,
    tags: ['hopline'],
    schemaVersion: SCHEMA_VERSION,
    version: 1,
    editable: true,
    refresh: '10s',
    time: { from: 'now-30m', to: 'now' },
    timezone: 'browser',
    links: [{ type: 'dashboards', title: 'Hopline', tags: ['hopline'], asDropdown: true, keepTime: true, includeVars: true }],
    templating: {
      list: [
        datasource('datasource', 'Data source', 'prometheus'),
        jobs(),
        ...variables.map(variableJson),
        ...TRACE_STORES.map(store => datasource(store, TRACES[store].title, store)),
        runbook(),
      ],
    },
    annotations: { list: [takeovers(), versions(), starts()] },
    panels: layOut(rows),
  };
}

function layOut(rows: readonly Row[]): Json[] {
  const placed: Json[] = [];
  let y = 0;
  for (const { title, panels } of rows) {
    placed.push({
      id: placed.length + 1,
      type: 'row',
      title,
      collapsed: false,
      gridPos: { h: 1, w: COLUMNS, x: 0, y },
      panels: [],
    });
    y += 1;
    let [x, height] = [0, 0];
    for (const panel of panels) {
      if (x + panel.width > COLUMNS) {
        y += height;
        [x, height] = [0, 0];
      }
      const h = panel.kind === 'stat' ? STAT_HEIGHT : PANEL_HEIGHT;
      placed.push({ id: placed.length + 1, ...panelJson(panel), gridPos: { h, w: panel.width, x, y } });
      x += panel.width;
      height = Math.max(height, h);
    }
    y += height;
  }
  return placed;
}

function panelJson(panel: Panel): Json {
  const { kind, title, description, content = '' } = panel;
  if (kind === 'text') return { type: kind, title, description, options: { mode: 'markdown', content } };
  if (kind === 'jaeger' || kind === 'tempo') {
    const { datasource } = TRACES[kind];
    const target = { refId: 'A', datasource, ...traceQuery(kind, content), limit: 20 };
    return { type: 'table', title, description, datasource, targets: [target], options: {}, fieldConfig: noFields() };
  }
  const targets = panel.queries.map(({ expr, legend }, index) => ({
    refId: String.fromCharCode('A'.charCodeAt(0) + index),
    datasource: PROMETHEUS,
    expr,
    legendFormat: legend === '' ? '__auto' : legend,
    ...(kind === 'timeseries' ? { exemplar: true } : { instant: true, range: false }),
    ...(kind === 'table' && { format: 'table' }),
  }));
  return {
    type: kind,
    title,
    description,
    datasource: PROMETHEUS,
    targets,
    links: linksOf(panel),
    options: optionsOf(kind),
    fieldConfig: fieldsOf(panel),
  };
}

function traceQuery(store: TraceStore, query: string): Json {
  return store === 'tempo'
    ? { queryType: 'traceql', query }
    : { queryType: 'search', service: 'hopline-ingress', ...(query !== '' && { tags: query }) };
}

/** From a panel to the section of its alert, and from a histogram to the traces of the shown time. */
function linksOf({ description, queries }: Panel): Json[] {
  const alert = ALERT.exec(description)?.[1];
  const section = { title: `Runbook: ${alert}`, url: `${variable('runbook')}#${alert?.toLowerCase()}`, targetBlank: true };
  const isHistogram = queries.some(({ expr }) => expr.includes('histogram_quantile'));
  return [...(alert === undefined ? [] : [section]), ...(isHistogram ? TRACE_STORES.map(tracesLink) : [])];
}

const variable = (name: string) => `\${${name}}`;

function tracesLink(store: TraceStore): Json {
  const query = { refId: 'A', ...traceQuery(store, store === 'tempo' ? '{ resource.service.name = "hopline-ingress" }' : '') };
  const range = { from: variable('__from'), to: variable('__to') };
  const left = encodeURIComponent(JSON.stringify({ datasource: variable(store), queries: [query], range }));
  // Grafana replaces variables only where they are not encoded.
  const url = `/explore?left=${left.replaceAll(/%24%7B(\w+)%7D/g, (_, name: string) => variable(name))}`;
  return { title: `Traces of this time in ${TRACES[store].title}`, url, targetBlank: true };
}

const noFields = () => ({ defaults: {}, overrides: [] });

function optionsOf(kind: Panel['kind']): Json {
  const reduceOptions = { calcs: ['lastNotNull'], fields: '', values: false };
  switch (kind) {
    case 'timeseries':
      return { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } };
    case 'stat':
      return { reduceOptions, colorMode: 'background', graphMode: 'none', textMode: 'value_and_name' };
    case 'bargauge':
      return { reduceOptions, displayMode: 'basic', orientation: 'horizontal' };
    default:
      return {};
  }
}

function fieldsOf({ kind, unit, redFrom, stacked = false }: Panel): Json {
  const steps = [{ color: 'green', value: null }, ...(redFrom === undefined ? [] : [{ color: 'red', value: redFrom }])];
  const custom = {
    lineWidth: 1,
    fillOpacity: stacked ? 40 : 8,
    showPoints: 'never',
    stacking: { mode: stacked ? 'normal' : 'none' },
  };
  const defaults = { unit, min: 0, thresholds: { mode: 'absolute', steps }, ...(kind === 'timeseries' && { custom }) };
  return { defaults, overrides: [] };
}

function datasource(name: string, label: string, type: string): Json {
  return { name, label, type: 'datasource', query: type, current: {}, hide: 0 };
}

function runbook(): Json {
  return { name: 'runbook', type: 'constant', query: RUNBOOK, current: { text: RUNBOOK, value: RUNBOOK }, hide: 2 };
}

/** One job for each cluster. */
function jobs(): Json {
  return { ...queryVariable('job', 'Cluster', 'label_values(hopline_spans_lost_total, job)'), multi: true };
}

function variableJson(variable: Variable): Json {
  const { name, label } = variable;
  if ('text' in variable)
    return { name, label, type: 'textbox', query: variable.text, current: { text: variable.text, value: variable.text } };
  return { ...queryVariable(name, label, variable.query), multi: true };
}

function queryVariable(name: string, label: string, query: string): Json {
  const all = { text: 'All', value: '$__all' };
  const source = { datasource: PROMETHEUS, query: { query, refId: name }, definition: query };
  return { name, label, type: 'query', ...source, refresh: 2, sort: 1, includeAll: true, allValue: '.*', current: all };
}

type Mark = { name: string; color: string; expr: string; title: string };

/** A line in every graph at each time for which `expr` has a value. */
function annotation({ name, color, expr, title }: Mark): Json {
  return { name, datasource: PROMETHEUS, enable: true, iconColor: color, expr, titleFormat: title };
}

const takeovers = () =>
  annotation({
    name: 'Takeovers',
    color: 'orange',
    expr: 'sum by (service) (increase(hopline_takeovers_total{job=~"$job", reason="lost"}[$__rate_interval])) > 0',
    title: '{{service}} took over shards',
  });

const versions = () => {
  const running = 'count by (service, version) (hopline_build_info{job=~"$job"}';
  return annotation({
    name: 'Versions',
    color: 'blue',
    expr: `${running}) unless ${running} offset $__interval)`,
    title: '{{service}} {{version}} began to run',
  });
};

const starts = () =>
  annotation({
    name: 'Starts',
    color: 'purple',
    expr: 'count by (service) (time() - process_start_time_seconds{job=~"$job"} < $__interval_ms / 1000)',
    title: '{{service}} started',
  });
