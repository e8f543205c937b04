import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { CHART, manifestsOf, podSpecs, ROOT, schemaFaults, skip, template, withoutKubeconform } from './rendered-chart.ts';

const FOLDER = join(CHART, 'examples');
/** Kinds of other programs, whose schemas are not here. */
const FURTHER_KINDS = ['BackendTrafficPolicy', 'GCPBackendPolicy', 'HealthCheckPolicy'];
const PAGES = ['load-balancers', 'kubernetes'].map(name => readFileSync(join(ROOT, `docs/guides/${name}.md`), 'utf8')).join();

function renderExample(name: string): string {
  const args = [...template([]), '--values', join(FOLDER, name)];
  return execFileSync('helm', args, { encoding: 'utf8', maxBuffer: 1 << 26 });
}

test('with Istio the proxy of ingress reaches istiod before ingress starts', { skip }, () => {
  const policy = manifestsOf(renderExample('istio.yaml')).find(
    ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'hopline-ingress',
  );
  const { egress } = policy!.spec as unknown as { egress: object[] };
  const istio = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'istio-system' } } };
  assert.ok(egress.some(rule => isDeepStrictEqual(rule, { to: [istio] })));
});

test('a PriorityClass that an example names is in the release', { skip }, () => {
  for (const name of readdirSync(FOLDER)) {
    const manifests = manifestsOf(renderExample(name));
    const classes = manifests.filter(({ kind }) => kind === 'PriorityClass').map(({ metadata }) => metadata.name);
    const named = podSpecs(manifests).flatMap(spec => (spec as { priorityClassName?: string }).priorityClassName ?? []);
    assert.deepEqual([...new Set(named)], classes, name);
  }
});

for (const name of readdirSync(FOLDER)) {
  test(`the example ${name} renders objects that Kubernetes accepts, and a guide names it`, { skip: withoutKubeconform }, () => {
    const text = renderExample(name);
    assert.equal(schemaFaults(text, [...FURTHER_KINDS, 'PriorityClass']), '');
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
