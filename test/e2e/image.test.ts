import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type NatsServer, startNats } from '../support/nats/nats-server.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const READY_MS_MAX = 180_000;
const run = promisify(execFile);
const isLinux = process.platform === 'linux';

/**
 * The files of the image, run by the image's own Node in their folder. Nothing of the checkout is used: no sources and no
 * node_modules. Checks that need a container engine (user, read-only root) are in test/kubernetes.
 */
let root: string;
let nats: NatsServer;
const processes: ChildProcess[] = [];

before(async () => {
  if (!isLinux) return;
  root = mkdtempSync(join(tmpdir(), 'hopline-rootfs-'));
  // The Node that runs the tests is the one of pins.json, which `npm run image` names.
  const env = { ...process.env, HOPLINE_IMAGE_NODE: process.execPath };
  await run(process.execPath, [join(ROOT, 'infra/image/main.ts'), '--rootfs', root], { env });
  nats = await startNats();
});

after(async () => {
  for (const child of processes) child.kill('SIGKILL');
  await nats?.stop();
  if (root) rmSync(root, { recursive: true, force: true });
});

function node(): string {
  return join(root, 'nodejs/bin/node');
}

/** Starts a role as the image does; resolves with its URL once it is ready. */
async function start(role: string, env: Record<string, string> = {}): Promise<string> {
  const child = spawn(node(), [join(root, 'app/hopline.mjs'), role], {
    cwd: join(root, 'app'),
    env: { PATH: join(root, 'nodejs/bin'), NATS_URL: nats.url, HOPLINE_HOST: '127.0.0.1', HOPLINE_PORT: '0', ...env },
  });
  processes.push(child);
  let output = '';
  const ready = Promise.withResolvers<string>();
  const late = setTimeout(() => ready.reject(new Error(`${role} is not ready:\n${output}`)), READY_MS_MAX);
  child.once('close', code => ready.reject(new Error(`${role} ended with code ${code}:\n${output}`)));
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.includes('"msg":"ready"')) ready.resolve(/"url":"(http[^"]+)"/.exec(output)?.[1] ?? '');
    });
  }
  return ready.promise.finally(() => clearTimeout(late));
}

test('the image contains everything that its services need: with only its files they start and answer a question', {
  skip: !isLinux && 'an image can be built only on Linux',
  timeout: 120_000,
}, async () => {
  const guide = { name: 'guide', adapter: 'recording', path: 'guide.jsonl', pace: 'burst', default: true };
  const [url] = await Promise.all([
    start('ingress'),
    start('relay'),
    start('supervisor'),
    start('notifier'),
    start('sub-agent', {
      HOPLINE_AGENT: JSON.stringify(guide),
      HOPLINE_AGENTS_DIR: join(root, 'app/demo'),
    }),
  ]);
  const web = await start('console', { HOPLINE_CONSOLE_INGRESS_URL: url });
  assert.match(await (await fetch(web)).text(), /<title>Hopline<\/title>/);
  const ask = [join(root, 'app/hopline.mjs'), 'ask', '--url', url, 'explain hopline'];
  const { stdout } = await run(node(), ask, { cwd: root, env: { PATH: join(root, 'nodejs/bin') }, timeout: 60_000 });
  assert.match(stdout, /relay/);
});

test('the image has no shell, no package manager and no sources, and only root may change its files', {
  skip: !isLinux && 'an image can be built only on Linux',
}, () => {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' });
  assert.deepEqual(
    files.filter(file => /(^|\/)(sh|bash|npm|pnpm|busybox)$|\.test\.|(?<!\.d)\.ts$/.test(file)),
    [],
  );
  for (const file of files.filter(name => name !== 'tmp')) {
    assert.equal(statSync(join(root, file)).mode & 0o022, 0, `${file} is writable for others`);
  }
  assert.ok(existsSync(join(root, 'tmp')));
});

test('no bundle imports node:http or node:https, because an import statement loads undici at every start', {
  skip: !isLinux && 'an image can be built only on Linux',
}, () => {
  const app = join(root, 'app');
  const bundles = readdirSync(app).filter(name => name.endsWith('.mjs'));
  assert.ok(bundles.includes('relay.mjs'));
  const importing = bundles.filter(name => /\bfrom\s*["'](?:node:)?https?["']/.test(readFileSync(join(app, name), 'utf8')));
  assert.deepEqual(importing, []);
});

test('the bill of materials names every bundled package with version and license', {
  skip: !isLinux && 'an image can be built only on Linux',
}, () => {
  const { components, serialNumber } = JSON.parse(readFileSync(join(root, 'app/sbom.cdx.json'), 'utf8'));
  // actions/attest rejects a list without one.
  assert.match(serialNumber, /^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  const names = components.map(({ name }: { name: string }) => name);
  for (const name of [
    'node',
    'fastify',
    'pino',
    '@nats-io/jetstream',
    '@opentelemetry/sdk-node',
    '@grpc/grpc-js',
    'preact',
    'uplot',
  ]) {
    assert.ok(names.includes(name), `${name} is missing`);
  }
  const unlicensed = components.filter(
    ({ licenses }: { licenses?: [{ license?: { id: string } }] }) => licenses?.[0].license?.id === 'NOASSERTION',
  );
  assert.deepEqual(unlicensed, []);
});
