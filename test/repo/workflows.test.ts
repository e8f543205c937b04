import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { PUBLIC_PACKAGES } from '../../infra/release/public-packages.ts';
import { projectFiles, read } from './source-files.ts';

type Step = { uses?: string; run?: string; with?: Record<string, unknown> };
type Job = {
  permissions?: Record<string, string>;
  environment?: string;
  'timeout-minutes'?: number;
  needs?: string | string[];
  strategy?: { matrix: Record<string, unknown> };
  steps: Step[];
};
type Workflow = { permissions?: unknown; jobs: Record<string, Job> };

const paths = projectFiles().filter(file => /^\.github\/workflows\/.+\.ya?ml$/.test(file));
const workflows = paths.map(path => ({ path, text: read(path), workflow: parse(read(path)) as Workflow }));
const jobs = workflows.flatMap(({ path, workflow }) =>
  Object.entries(workflow.jobs).map(([name, job]) => ({ name: `${path} ${name}`, job })),
);

/** A tag may move to other code; a commit cannot. */
const PINNED_ACTION = /^\s*(?:- )?uses: [\w-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/;
const PINNED_IMAGE = /@sha256:[0-9a-f]{64}$/;
/** Images whose digest was not verified when the others were pinned. SECURITY.md has the command that pins one. */
const TAG_ONLY = ['nats:2.15.2', 'jaegertracing/jaeger:2.10.0', 'otel/opentelemetry-collector-contrib:0.135.0'];

test('every action is pinned to a commit, with its version as a comment', () => {
  const lines = workflows.flatMap(({ text }) => text.split('\n')).filter(line => /^\s*(?:- )?uses:/.test(line));
  assert.ok(lines.length > 10);
  for (const line of lines) assert.match(line, PINNED_ACTION);
  for (const tag of ['- uses: actions/checkout@v5', '- uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1'])
    assert.doesNotMatch(tag, PINNED_ACTION);
});

test('one action has one version in all workflows', () => {
  const pins = new Map<string, string>();
  for (const { uses } of jobs.flatMap(({ job }) => job.steps)) {
    const [action, commit] = uses?.split('@') ?? [];
    if (action !== undefined) assert.equal(commit, pins.get(action) ?? commit, action);
    if (action !== undefined) pins.set(action, commit!);
  }
});

test('a job has only the permissions that it names, and only a release and the site may write', () => {
  for (const { path, workflow } of workflows) assert.deepEqual(workflow.permissions, {}, path);
  for (const { name, job } of jobs) {
    assert.ok(job.permissions !== undefined && job['timeout-minutes'] !== undefined, name);
    const written = Object.keys(job.permissions).filter(one => job.permissions![one] !== 'read');
    if (name === '.github/workflows/site.yml publish') assert.deepEqual(written.toSorted(), ['id-token', 'pages'], name);
    else if (!name.startsWith('.github/workflows/release.yml ') || name.endsWith(' campaign'))
      assert.deepEqual(written, [], name);
    else {
      // Binaries are files of a release on GitHub, images and charts are packages. npm makes its attestations itself.
      const target = /^.* (?:binary|npm)$/.test(name) ? 'contents' : 'packages';
      const attests = name.endsWith(' npm') ? [] : ['attestations'];
      assert.deepEqual(written.toSorted(), [...attests, 'id-token', target].toSorted(), name);
      assert.equal(job.environment, 'release', name);
    }
  }
});

test('a checkout leaves no token behind, and no expression is pasted into a script', () => {
  for (const { name, job } of jobs) {
    for (const step of job.steps) {
      if (step.uses?.startsWith('actions/checkout@')) assert.equal(step.with?.['persist-credentials'], false, name);
      assert.ok(!step.run?.includes('${{'), `${name}: pass ${step.run} its values as environment variables`);
    }
  }
});

test('nothing of a release is published before an hour of mixed faults has passed, on one server and on three', () => {
  const { workflow } = workflows.find(({ path }) => path.endsWith('/release.yml'))!;
  const { campaign, ...published } = workflow.jobs;
  const waitsForCampaign = (name: string): boolean =>
    [workflow.jobs[name]!.needs ?? []].flat().some(other => other === 'campaign' || waitsForCampaign(other));
  for (const name of Object.keys(published)) assert.ok(waitsForCampaign(name), name);
  assert.deepEqual(campaign!.strategy!.matrix, { nodes: [1, 3] });
  const script = campaign!.steps.find(({ run }) => run?.includes('npm run faults'))!.run!;
  assert.match(script, /npm run faults -- --mixed --minutes 60 --nodes "\$NODES" /);
  assert.ok(campaign!['timeout-minutes']! > 75);
});

test('a release signs and attests what it pushed, by digest', () => {
  const { workflow } = workflows.find(({ path }) => path.endsWith('/release.yml'))!;
  const ofDigests = Object.entries(workflow.jobs).filter(([job]) => ['image', 'chart'].includes(job));
  for (const [name, { steps }] of ofDigests) {
    const signs = steps.filter(({ run }) => run?.startsWith('cosign sign '));
    assert.equal(signs.length, 1, name);
    assert.match(signs[0]!.run!, /@\$DIGEST"$/, name);
    const attested = steps.filter(({ uses }) => uses?.startsWith('actions/attest@')).map(step => step.with!);
    assert.deepEqual(
      attested.map(one => one['sbom-path']),
      name === 'image' ? [undefined, 'sbom.cdx.json'] : [undefined],
      name,
    );
    for (const one of attested) {
      assert.match(String(one['subject-digest']), /^\$\{\{ steps\.\w+\.outputs\.digest \}\}$/, name);
      assert.equal(one['push-to-registry'], true, name);
    }
  }
});

test('a release signs and attests the archive of each binary that it uploads', () => {
  const { workflow } = workflows.find(({ path }) => path.endsWith('/release.yml'))!;
  const { steps } = workflow.jobs.binary!;
  const scripts = steps.flatMap(({ run }) => run ?? []);
  assert.equal(scripts.filter(run => /^cosign sign-blob .*"\$ARCHIVE"$/.test(run)).length, 1);
  assert.ok(scripts.some(run => run.includes('gh release upload "$GITHUB_REF_NAME" "$ARCHIVE" "$ARCHIVE.sigstore.json"')));
  const attested = steps.filter(({ uses }) => uses?.startsWith('actions/attest@')).map(step => step.with!);
  assert.deepEqual(
    attested.map(one => String(one['subject-path']).match(/\w+/g)),
    [
      ['env', 'ARCHIVE'],
      ['env', 'ARCHIVE'],
    ],
  );
  assert.deepEqual(
    attested.map(one => one['sbom-path'] !== undefined),
    [false, true],
  );
});

test('a release publishes every npm package with its provenance, those that others need first', () => {
  const { workflow } = workflows.find(({ path }) => path.endsWith('/release.yml'))!;
  const scripts = workflow.jobs.npm!.steps.flatMap(({ run }) => run ?? []);
  const publish = scripts.find(run => run.includes('npm publish')) ?? assert.fail('nothing is published');
  assert.match(publish, /npm publish "\$tarball" --provenance --access public/);
  const [, names] = /for name in (.+); do/.exec(publish) ?? assert.fail(publish);
  const tarballs = PUBLIC_PACKAGES.map(({ folder }) => `hopline-${folder.replace('packages/', '')}`);
  assert.deepEqual(names!.split(' ').toSorted(), [...tarballs, 'hopline', 'create-hopline'].toSorted());
  // A page has one copy of the client, so the hooks name it as a peer; a new project installs the other two.
  const after = (one: string, other: string) => assert.ok(names!.split(' ').indexOf(one) > names!.split(' ').indexOf(other), one);
  after('hopline-react', 'hopline-client');
  after('create-hopline', 'hopline');
  after('create-hopline', 'hopline-agent');
});

test('every image of the Dockerfile, of compose and of the workflows has a digest, or is listed as one without', () => {
  const dockerfile = [...read('infra/docker/Dockerfile').matchAll(/^FROM (?:--\S+ )?(\S+)/gm)].map(([, image]) => image!);
  const compose = [...read('infra/compose/compose.yaml').matchAll(/^\s+image: (\S+)/gm)].map(([, image]) => image!);
  const inWorkflows = workflows.flatMap(({ text }) => [...text.matchAll(/image[:=] *(\S+[:@]\S+)/g)].map(([, image]) => image!));
  const images = [...dockerfile, ...compose, ...inWorkflows]
    .map(image => image.replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1'))
    // Leaves out this repository's own image and the empty base image.
    .filter(image => !image.startsWith('hopline:') && !image.startsWith('$'));
  assert.deepEqual(new Set(images.filter(image => !PINNED_IMAGE.test(image))), new Set(TAG_ONLY));
  assert.equal(images.filter(image => PINNED_IMAGE.test(image)).length, 4);
  assert.match(read('infra/docker/Dockerfile'), /^ARG BASE_IMAGE=scratch$/m);
});
