import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { writeApiReference } from './api-reference.ts';
import { packAll, type Tarball } from './pack.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
let folder: string;
let tarballs: Tarball[];

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'hopline-tarballs-'));
  tarballs = packAll(ROOT, folder);
});

after(() => rmSync(folder, { recursive: true, force: true }));

test('publint finds nothing wrong with the tarballs', async () => {
  for (const { name, path } of tarballs) {
    const data = readFileSync(path);
    const tarball = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength) as ArrayBuffer;
    const { messages, pkg } = await publint({ pack: { tarball }, strict: true });
    assert.deepEqual(
      messages.map(message => formatMessage(message, pkg)),
      [],
      name,
    );
  }
});

test('the types of the tarballs resolve wherever their code does', async () => {
  for (const { name, path } of tarballs) {
    const checked = await checkPackage(createPackageFromTarballData(new Uint8Array(readFileSync(path))));
    // The command has no types, because code does not import it.
    if (name === '@hopline/cli') continue;
    assert.ok(checked.types, `${name} has no types`);
    // The packages have only ES modules. `require` loads them from Node 20.19 on; older resolution modes are not supported.
    const problems = checked.problems.filter(
      ({ kind, ...where }) => kind !== 'CJSResolvesToESM' && !('resolutionKind' in where && where.resolutionKind === 'node10'),
    );
    assert.deepEqual(problems, [], name);
  }
});

test('a tarball contains code, declarations, README and license, but no tests', () => {
  for (const { path, files, bytes } of tarballs) {
    assert.ok(files > 3, basename(path));
    assert.ok(bytes < 768 * 1024, `${basename(path)} has ${bytes} bytes`);
  }
});

test('every public name of the packages is documented', { timeout: 120_000 }, async () => {
  assert.deepEqual(await writeApiReference(ROOT, undefined), []);
});
