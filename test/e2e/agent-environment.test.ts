import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { collect, textOf } from '../support/cluster/a2a-stream.ts';
import { spawnLauncher } from '../support/cluster/launcher-process.ts';

const PRINTS_ENVIRONMENT = `
  export default {
    name: 'nosy', description: 'Prints its environment', skills: ['nosy'],
    async *run() { yield JSON.stringify(process.env); },
  };`;

test("an agent's code sees the variables that its entry lists, and no secret of another agent or of the cluster", {
  timeout: 180_000,
}, async t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-environment-'));
  writeFileSync(join(folder, 'nosy.mjs'), PRINTS_ENVIRONMENT);
  const agents = [
    { name: 'nosy', adapter: 'module', path: './nosy.mjs', env: ['NOSY_KEY'] },
    { name: 'argo', adapter: 'a2a', url: 'http://127.0.0.1:1/', auth: { bearerEnv: 'ARGO_TOKEN' } },
  ];
  writeFileSync(join(folder, 'agents.json'), JSON.stringify({ agents }));
  const secrets = { NOSY_KEY: 'own', ARGO_TOKEN: 'canary-1', OPENAI_API_KEY: 'canary-2', GITHUB_TOKEN: 'canary-3' };
  const launcher = spawnLauncher(folder, ['--agents', join(folder, 'agents.json')], secrets);
  t.after(async () => {
    launcher.kill('SIGTERM');
    if (launcher.exitCode === null) await once(launcher, 'exit');
    rmSync(folder, { recursive: true, force: true });
  });
  let output = '';
  for await (const text of launcher.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    output += text;
    if (/Ctrl-C drains/.test(output)) break;
  }
  launcher.stdout.resume();
  const url = /Hopline is up: (\S+) /.exec(output)?.[1] ?? assert.fail(output);
  const environment = textOf(await collect(url, { text: 'nosy' }), 'streaming_result');
  assert.doesNotMatch(environment, /canary/);
  assert.equal(JSON.parse(environment).NOSY_KEY, 'own');
});
