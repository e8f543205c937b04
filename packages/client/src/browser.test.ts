import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { agentCard } from '@hopline/agent-card';
import { CardSigner } from '@hopline/agent-card/signing';
import { startBadServer, story } from './bad-server.test-kit.ts';

const run = promisify(execFile);
const hook = new URL('no-built-ins.test-hook.ts', import.meta.url).href;
const cwd = fileURLToPath(new URL('..', import.meta.url));

/**
 * Loads the files that a bundler would take, and forbids code generated from text, as pages do whose Content-Security-Policy lacks
 * 'unsafe-eval'.
 */
const AS_BROWSERS = ['--conditions=browser', '--disallow-code-generation-from-strings'];

const inBrowser = (script: string) =>
  run(process.execPath, [...AS_BROWSERS, '--import', hook, '--input-type=module', '--eval', script], {
    cwd,
    timeout: 120_000,
  });

test('the client loads and resumes without modules or globals of Node', async () => {
  const server = await startBadServer({ events: story(20), fault: n => (n === 0 ? { kind: 'cut', after: 5 } : undefined) });
  try {
    const { stdout } = await inBrowser(`
      import { createClient } from '@hopline/client';
      let events = 0;
      for await (const { event } of createClient({ url: '${server.url}', retry: { baseMs: 1 } }).stream('count')) events += 1;
      console.log(events, typeof process, typeof Buffer, typeof crypto.randomUUID, typeof ReadableStream.prototype[Symbol.asyncIterator]);
    `);
    assert.equal(stdout, `${story(20).length} undefined undefined undefined undefined\n`);
    assert.equal(server.requests.length, 2);
  } finally {
    await server.close();
  }
});

test('a signed card is verified without modules or globals of Node [S4-5]', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const signer = await CardSigner.open({ key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string });
  const card = agentCard({ name: 'Hop', description: 'd', version: '1', url: 'http://hop/', skills: [], capabilities: {} });
  const documents = { '/.well-known/agent-card.json': JSON.stringify({ ...card, signatures: await signer.sign(card) }) };
  const server = await startBadServer({ events: [], documents });
  try {
    const { stdout } = await inBrowser(`
      import { createClient } from '@hopline/client';
      const keyOf = async () => (${JSON.stringify(publicKey.export({ format: 'jwk' }))});
      const { agent, signature } = await createClient({ url: '${server.url}' }).card({ keyOf });
      console.log(agent.name, signature.whole);
    `);
    assert.equal(stdout, 'Hop true\n');
  } finally {
    await server.close();
  }
});

test('the test hook works: imports, requires and globals of Node fail', async () => {
  await assert.rejects(inBrowser(`import 'node:crypto';`), /imports node:crypto/);
  await assert.rejects(inBrowser(`import './src/bad-server.test-kit.ts';`), /bad-server.test-kit.ts imports node:events/);
  await assert.rejects(inBrowser(`Buffer.from('a');`), /TypeError/);
  await assert.rejects(inBrowser(`new Function('');`), /EvalError/);
});
