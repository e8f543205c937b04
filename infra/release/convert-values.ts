import { readFileSync } from 'node:fs';
import { type Document, isMap, isScalar, isSeq, parseDocument, type YAMLMap } from 'yaml';

/**
 * Converts chart values that were written before a change in docs/guides/upgrading.md to the current form: `node
 * infra/release/convert-values.ts values.yaml > values-new.yaml`. Comments are kept. Decisions that a person has to make are printed on
 * stderr.
 */

type Path = readonly string[];

/** Values that have moved. A role has `pods`, like the chart as a whole. */
const MOVED: readonly (readonly [from: Path, to: Path])[] = [
  [
    ['pods', 'serviceAccountName'],
    ['pods', 'serviceAccount', 'name'],
  ],
  [
    ['pods', 'preStopSeconds'],
    ['ingress', 'pods', 'preStopSeconds'],
  ],
  [
    ['nats', 'affinity'],
    ['nats', 'pods', 'affinity'],
  ],
  [
    ['ingress', 'settings', 'HOPLINE_AUTH_ISSUER'],
    ['auth', 'issuer'],
  ],
  [
    ['ingress', 'settings', 'HOPLINE_AUTH_AUDIENCE'],
    ['auth', 'audience'],
  ],
  [
    ['ingress', 'settings', 'HOPLINE_AUTH_JWKS_URL'],
    ['auth', 'jwksUrl'],
  ],
];

/** Values that are gone, and what replaces them. */
const GONE: readonly (readonly [path: Path, instead: string])[] = [
  [['nats', 'monitorUrl'], 'set keda.prometheus if you use keda'],
  ...['ingress', 'relay', 'supervisor', 'notifier'].map(
    role =>
      [
        [role, 'autoscaling', 'cpuPercent'],
        `set ${role}.autoscaling.cpu, an amount such as 600m, if its default does not fit`,
      ] as const,
  ),
  ...(['HOPLINE_AUTH_JWKS_FILE', 'HOPLINE_AUTH_API_KEYS_FILE'] as const).map(
    name =>
      [
        ['ingress', 'settings', name],
        'put the file into a Secret, and name it in auth.jwksSecret or auth.apiKeysSecret',
      ] as const,
  ),
];

type Converted = { text: string; notes: string[] };

export function convertValues(text: string): Converted {
  const document = parseDocument(text);
  const [fault] = document.errors;
  if (fault !== undefined) throw new Error(`not YAML: ${fault.message}`);
  const notes: string[] = [];
  for (const [from, to] of MOVED) if (document.hasIn(from)) move(document, from, to, notes);
  for (const [path, instead] of GONE) {
    if (!document.hasIn(path)) continue;
    removeIn(document, path);
    notes.push(`${path.join('.')} is gone: ${instead}`);
  }
  convertAgents(document, notes);
  if (!document.hasIn(['auth']) && !document.hasIn(['allowUnauthenticated']))
    notes.push('set auth, or allowUnauthenticated: true, in this file or in another one of the release');
  return { text: String(document), notes };
}

/** A value that both places have stays where it is today. */
function move(document: Document, from: Path, to: Path, notes: string[]): void {
  const value = document.getIn(from, true);
  removeIn(document, from);
  if (document.hasIn(to)) notes.push(`${from.join('.')} is dropped: ${to.join('.')} is set`);
  else document.setIn(to, value);
}

/** Removes a value, and the maps that are empty without it. */
function removeIn(document: Document, path: Path): void {
  document.deleteIn(path);
  const parent = path.slice(0, -1);
  const rest = parent.length === 0 ? undefined : document.getIn(parent);
  if (isMap(rest) && rest.items.length === 0) removeIn(document, parent);
}

/** The list of agents becomes a map by name, so that files of values can be laid over each other. */
function convertAgents(document: Document, notes: string[]): void {
  if (!document.hasIn(['agents'])) return;
  const agents = document.getIn(['agents'], true);
  const isEmpty = (isSeq(agents) && agents.items.length === 0) || (isScalar(agents) && agents.value === null);
  if (isEmpty) {
    document.deleteIn(['agents']);
    document.setIn(['demoAgents'], false);
    return;
  }
  if (!isSeq(agents)) return;
  const byName = document.createNode({}) as YAMLMap;
  // The comment before the first entry belongs to the list; a comment before any other entry belongs to that entry.
  byName.commentBefore = agents.commentBefore ?? null;
  for (const agent of agents.items) {
    const name = isMap(agent) ? agent.get('name') : undefined;
    if (!isMap(agent) || typeof name !== 'string') throw new Error('an entry of agents has no name');
    if (byName.has(name)) throw new Error(`two agents have the name ${name}: only one of them ever ran`);
    agent.delete('name');
    const account = agent.get('serviceAccountName', true);
    if (account !== undefined) {
      agent.delete('serviceAccountName');
      agent.setIn(['pods', 'serviceAccount', 'name'], account);
    }
    const key = document.createNode(name);
    key.commentBefore = agent.commentBefore ?? null;
    agent.commentBefore = null;
    byName.set(key, agent);
  }
  document.setIn(['agents'], byName);
  if (document.getIn(['nats', 'existingSecret']))
    notes.push(
      'each agent has a NATS user of its own: nats.existingSecret needs a password agent-NAME for each, or set nats.userPerAgent: false',
    );
}

if (import.meta.main) {
  const [path, ...more] = process.argv.slice(2);
  if (path === undefined || more.length > 0) {
    process.stderr.write('usage: node infra/release/convert-values.ts FILE > NEW_FILE\n');
    process.exitCode = 2;
  } else {
    try {
      const { text, notes } = convertValues(readFileSync(path, 'utf8'));
      for (const note of notes) process.stderr.write(`${note}\n`);
      process.stdout.write(text);
    } catch (thrown) {
      process.stderr.write(`${path}: ${(thrown as Error).message}\n`);
      process.exitCode = 1;
    }
  }
}
