import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { codeEnvironment } from './code-environment.ts';
import { type CodeUserOptions, chooseCodeUser } from './code-user.ts';

const choose = (more: Partial<CodeUserOptions>) =>
  chooseCodeUser({ setting: 'auto', name: 'a', paths: [], ownUid: 0, canStart: () => true, ...more });

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'code-user-'));
  t.after(() => rmSync(folder, { recursive: true }));
  chmodSync(folder, 0o755);
  return folder;
}

test('root gives each agent a user of its own, the same at each start', () => {
  const [one, again, other] = [choose({}), choose({}), choose({ name: 'b' })];
  assert.ok(one.user !== undefined && one.user.uid >= 61_184 && one.user.uid <= 65_519);
  assert.deepEqual(again, one);
  assert.notDeepEqual(other, one);
});

test('if the code shares the user of the sub-agent, the reason is given', t => {
  const folder = folderOf(t);
  const closed = join(folder, 'closed');
  mkdirSync(closed, { mode: 0o700 });
  writeFileSync(join(closed, 'a.ts'), '');
  writeFileSync(join(folder, 'open.ts'), '', { mode: 0o644 });
  assert.deepEqual(choose({ ownUid: 1_000 }), { shared: 'only root may start a process of another user' });
  assert.deepEqual(choose({ paths: [join(closed, 'a.ts')] }), { shared: `another user cannot read ${join(closed, 'a.ts')}` });
  assert.deepEqual(choose({ canStart: () => false }), { shared: 'no process of another user can be started' });
  assert.deepEqual(choose({ setting: 'same' }), { shared: 'HOPLINE_CODE_USER is `same`' });
  assert.ok(choose({ paths: [join(folder, 'open.ts'), join(folder, 'missing.ts')] }).user);
});

test('a user named in the setting is used, whatever it can read', () => {
  assert.deepEqual(choose({ setting: '1234:99', ownUid: 5, paths: ['/root'] }), { user: { uid: 1_234, gid: 99 } });
  for (const setting of ['daemon', '1:', '-1:1', 'Auto'])
    assert.throws(() => choose({ setting }), /^Error: HOPLINE_CODE_USER must be /);
});

test('code gets the variables of every program and those that its entry names', () => {
  const variables = {
    PATH: '/bin',
    HOME: '/root',
    LC_ALL: 'C',
    NODE_ENV: 'production',
    NATS_PASSWORD: 'secret',
    HOPLINE_AGENT: '{}',
    OPENAI_API_KEY: 'secret',
    OTEL_EXPORTER_OTLP_HEADERS: 'secret',
    NODE_OPTIONS: '--require=/x',
    HTTPS_PROXY: 'http://user:secret@proxy',
    WEATHER_KEY: 'named',
  };
  assert.deepEqual(codeEnvironment(variables, ['WEATHER_KEY', 'MISSING'], undefined), {
    PATH: '/bin',
    HOME: '/root',
    LC_ALL: 'C',
    NODE_ENV: 'production',
    WEATHER_KEY: 'named',
  });
  const { HOME } = codeEnvironment(variables, [], { uid: 1, gid: 1 });
  assert.notEqual(HOME, '/root');
});
