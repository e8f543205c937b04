import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { convertValues } from '../../infra/release/convert-values.ts';
import { manifestsOf, skip, template } from './rendered-chart.ts';

/** Values that the chart of 2026-11-27 took. */
const BEFORE = `pods: { serviceAccountName: apps, preStopSeconds: 30 }
agents:
  - name: weather
    serviceAccountName: weather
    entry: { adapter: a2a, url: http://weather }
nats: { affinity: { podAntiAffinity: {} }, monitorUrl: http://nats:8222 }
relay: { autoscaling: { enabled: true, cpuPercent: 75 } }
`;

test('the chart refuses values of an earlier chart, and takes them once they are converted', { skip }, t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-values-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'values.yaml');
  const render = (values: string) => {
    writeFileSync(file, values);
    return execFileSync('helm', [...template([]), '--values', file], { encoding: 'utf8', maxBuffer: 1 << 26, stdio: 'pipe' });
  };
  assert.throws(() => render(BEFORE), /serviceAccountName|cpuPercent|monitorUrl|affinity/);
  const manifests = manifestsOf(render(convertValues(BEFORE).text));
  const accountOf = (suffix: string) => {
    const found = manifests.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith(suffix))!;
    return (found.spec as unknown as { template: { spec: { serviceAccountName: string } } }).template.spec.serviceAccountName;
  };
  assert.deepEqual([accountOf('-relay'), accountOf('-agent-weather')], ['apps', 'weather']);
});
