import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CHART, manifestsOf, ROOT, schemaFaults, template, withoutKubeconform } from './rendered-chart.ts';

const FOLDER = join(CHART, 'examples');
/** Kinds of other programs, whose schemas are not here. */
const FURTHER_KINDS = ['BackendTrafficPolicy', 'GCPBackendPolicy', 'HealthCheckPolicy'];
const PAGES = ['load-balancers', 'kubernetes'].map(name => readFileSync(join(ROOT, `docs/guides/${name}.md`), 'utf8')).join();

for (const name of readdirSync(FOLDER)) {
  test(`the example ${name} renders objects that Kubernetes accepts, and a guide names it`, { skip: withoutKubeconform }, () => {
    const args = [...template([]), '--values', join(FOLDER, name)];
    const text = execFileSync('helm', args, { encoding: 'utf8', maxBuffer: 1 << 26 });
    assert.equal(schemaFaults(text, FURTHER_KINDS), '');
    assert.ok(PAGES.includes(`/examples/${name})`), 'a guide names it');
    const manifests = manifestsOf(text);
    for (const { kind, spec } of manifests) {
      if (!FURTHER_KINDS.includes(kind)) continue;
      const { targetRef, targetRefs = [targetRef] } = spec as unknown as Record<'targetRef' | 'targetRefs', never>;
      for (const { kind, name } of targetRefs as { kind: string; name: string }[])
        assert.ok(
          manifests.some(one => one.kind === kind && one.metadata.name === name),
          `${kind}/${name} is in the release`,
        );
    }
  });
}
