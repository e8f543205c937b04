import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { HOST_ARCHITECTURE } from './libraries.ts';
import { RUN, requireComplete, writeBase } from './rootfs.ts';

const work = mkdtempSync(join(tmpdir(), 'hopline-rootfs-test-'));
after(() => rmSync(work, { recursive: true, force: true }));
const isLinux = process.platform === 'linux';
const skip = !isLinux && 'an image is made on Linux';
const other = HOST_ARCHITECTURE === 'amd64' ? 'arm64' : 'amd64';

test('the base has every library of its Node, all of one architecture', { skip }, () => {
  const base = join(work, 'own');
  writeBase(base, process.execPath, HOST_ARCHITECTURE, join(work, 'unused'));
  assert.throws(() => requireComplete(base, other), new RegExp(`is for ${HOST_ARCHITECTURE}, not for ${other}`));
  const library = ['lib', 'usr/lib', 'lib64'].map(folder => join(base, folder)).find(existsSync)!;
  const before = join(work, 'without-libraries');
  cpSync(base, before, { recursive: true });
  rmSync(library.replace(base, before), { recursive: true });
  assert.throws(() => requireComplete(before, HOST_ARCHITECTURE), /node is linked with \S+, which is not in the image/);
  assert.throws(() => writeBase(join(work, 'wrong'), process.execPath, other, work), new RegExp(`not for ${other}`));
});

const { version } = JSON.parse(readFileSync(new URL('../local/bootstrap/pins.json', import.meta.url), 'utf8')).node;
const name = `node-linux-${other === 'arm64' ? 'arm64' : 'x64'}`;
const otherNode = join(homedir(), '.cache/hopline', `${name}-${version}`, 'node_modules', name, 'bin/node');
const withoutNode = !existsSync(otherNode) && `no ${name} is cached: npm run image -- --rootfs DIR --platform linux/${other}`;
test('every program and library in an image for another architecture has that architecture', {
  skip: skip || withoutNode,
}, () => {
  const base = join(work, 'other');
  writeBase(base, otherNode, other, join(work, 'packages'));
  assert.throws(() => requireComplete(base, HOST_ARCHITECTURE), new RegExp(`is for ${other}`));
});

test('the Dockerfile starts the image in the same way as the archive', () => {
  const text = readFileSync(new URL('../docker/Dockerfile', import.meta.url), 'utf8');
  const of = (instruction: string) => new RegExp(`^${instruction} (.*)$`, 'm').exec(text)?.[1];
  const final = {
    user: of('USER'),
    workingFolder: of('WORKDIR /app') ?? '/app',
    entrypoint: JSON.parse(of('ENTRYPOINT')!),
    environment: of('ENV')!.split(' '),
    ports: of('EXPOSE')!
      .split(' ')
      .map(port => `${port}/tcp`),
  };
  assert.deepEqual(final, RUN);
});
