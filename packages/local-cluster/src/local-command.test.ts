import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { installedCommand } from './local-command.ts';

test('a hint names the command installed in the folder, in the cache of npx, or globally, and installs nothing', t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-local command-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const install = (place: string) => {
    mkdirSync(join(folder, place, 'node_modules/.bin'), { recursive: true });
    writeFileSync(join(folder, place, 'node_modules/.bin/hopline'), '');
    return join(folder, place, 'node_modules/hopline/cli.mjs');
  };
  const [inProject, inCache] = [install('project'), install('npm-cache/_npx/4f1e')];
  const globally = join(folder, 'lib/node_modules/hopline/cli.mjs');
  const [project, empty] = [join(folder, 'project/page'), join(folder, 'empty')];
  const path = `'${join(folder, 'npm-cache/_npx/4f1e/node_modules/.bin/hopline')}'`;
  assert.deepEqual(
    [installedCommand(inProject, project), installedCommand(inCache, empty), installedCommand(globally, empty)],
    ['npx --no hopline', path, 'hopline'],
  );
});
