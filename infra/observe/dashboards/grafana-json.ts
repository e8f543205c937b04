import type { Dashboard, Panel, Row, Variable } from './panels.ts';

/** Grafana 9 reads this version of the model; later versions migrate it when they load it. */
const SCHEMA_VERSION = 37;
const COLUMNS = 24;
const PANEL_HEIGHT = 8;
const STAT_HEIGHT = 4;
const PROMETHEUS = { type: 'prometheus', uid: '$datasource' };
const JAEGER = { type: 'jaeger', uid: 'jaeger' };

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
    templating: { list: [datasource(), jobs(), ...variables.map(variableJson)] },
    annotations: { list: [takeovers()] },
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
  if (kind === 'traces') {
    const target = { refId: 'A', datasource: JAEGER, queryType: 'search', service: 'hopline-ingress', tags: content, limit: 20 };
    return { type: 'table', title, description, datasource: JAEGER, targets: [target], options: {}, fieldConfig: noFields() };
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
    options: optionsOf(kind),
    fieldConfig: fieldsOf(panel),
  };
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

function datasource(): Json {
  return { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', current: {}, hide: 0 };
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

/** Draws a line in every graph at the time when a shard lost its owner. */
function takeovers(): Json {
  const expr = 'sum by (service) (increase(hopline_takeovers_total{job=~"$job", reason="lost"}[$__interval])) > 0';
  return {
    name: 'Takeovers',
    datasource: PROMETHEUS,
    enable: true,
    iconColor: 'orange',
    expr,
    titleFormat: '{{service}} took over shards',
  };
}
