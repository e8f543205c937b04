import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, suite, test } from 'node:test';
import { compileCache } from '../../../test/kit/compile-cache.ts';
import { until } from '../../../test/kit/until.ts';
import { EXIT_CONFIG } from './boot-service.ts';

type Line = {
  msg: string;
  level: string;
  url?: string;
  reason?: string;
  settings?: Record<string, unknown>;
  err?: { message: string };
};

type Run = {
  readonly child: ChildProcess;
  readonly lines: Line[];
  /** Resolves with the first line that has this message. Rejects when the process ends without it. */
  line(message: string): Promise<Line>;
  readonly ended: Promise<{ code: number | null; elapsedMs: number; stderr: string }>;
};

const SCRIPT = new URL('./run-service.test-service.ts', import.meta.url).pathname;

const started = new Set<ChildProcess>();
after(() => {
  for (const child of started) child.kill('SIGKILL');
});

function run(mode: string, env: Record<string, string> = {}): Run {
  const startedAt = performance.now();
  const args = [SCRIPT, JSON.stringify({ HOPLINE_PORT: '0', HOPLINE_INSTANCE: 'test-1', ...env }), mode];
  const child = spawn(process.execPath, args, { env: compileCache(), stdio: ['pipe', 'pipe', 'pipe'] });
  started.add(child);
  const lines: Line[] = [];
  const waiting = new Map<string, { resolve(line: Line): void; reject(error: Error): void }>();
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', chunk => {
    stderr += chunk;
  });
  createInterface({ input: child.stdout }).on('line', text => {
    const line = JSON.parse(text) as Line;
    lines.push(line);
    waiting.get(line.msg)?.resolve(line);
  });
  const ended = new Promise<{ code: number | null; elapsedMs: number; stderr: string }>(resolve => {
    child.once('close', code => {
      for (const { reject } of waiting.values()) reject(new Error(`ended with ${code}; ${JSON.stringify(lines)} ${stderr}`));
      resolve({ code, elapsedMs: performance.now() - startedAt, stderr });
    });
  });
  const line = (message: string) =>
    new Promise<Line>((resolve, reject) => {
      const seen = lines.find(({ msg }) => msg === message);
      if (seen !== undefined) resolve(seen);
      else waiting.set(message, { resolve, reject });
    });
  return { child, lines, line, ended };
}

const messages = ({ lines }: Run) => lines.map(({ msg }) => msg);
const DRAIN = ['draining', 'signal aborted', 'close begins', 'close ends', 'stopped'];

// Each test is a process that takes half a second to start.
suite('a service process', { concurrency: 3, timeout: 120_000 }, () => {
  test('SIGUSR2 switches to level debug and back', async () => {
    const service = run('well');
    await service.line('ready');
    service.child.kill('SIGUSR2');
    assert.equal((await service.line('log level changed')).reason, 'debug');
    service.child.kill('SIGTERM');
    assert.equal((await service.ended).code, 0);
  });

  test('SIGTERM: readiness off first, then close in order, exit code 0; probes respond throughout', async () => {
    const service = run('close-waits', { TEST_KEY: 'PLANTED-KEY' });
    const { url } = await service.line('probes listening');
    await service.line('ready');
    assert.equal((await fetch(`${url}/readyz`)).status, 200);
    const metrics = await (await fetch(`${url}/metrics`)).text();
    assert.match(metrics, /hopline_tokens_total\{service="test-service"\} 7/);
    assert.match(metrics, /hopline_check_failing\{service="test-service",check="log"\} 0/);
    service.child.kill('SIGTERM');
    await service.line('close begins');
    const draining = await fetch(`${url}/readyz`);
    assert.equal(draining.status, 503);
    assert.equal(((await draining.json()) as { draining: boolean }).draining, true);
    assert.equal((await fetch(`${url}/livez`)).status, 200);
    service.child.stdin?.write('\n');
    assert.equal((await service.ended).code, 0);
    assert.deepEqual(messages(service), ['starting', 'probes listening', 'ready', ...DRAIN]);
    assert.equal(service.lines[0]?.settings?.TEST_KEY, '***');
    assert.doesNotMatch(JSON.stringify(service.lines), /PLANTED/);
  });

  test('probes answer under IP addresses, localhost and the configured names, and to no other Host', async () => {
    const service = run('well', { HOPLINE_ALLOWED_HOSTS: 'relay.internal', TEST_PUBLIC_URL: 'https://public.example/x' });
    const { url } = await service.line('probes listening');
    await service.line('ready');
    const statusFor = async (host: string) => {
      const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
      get(`${url}/livez`, { headers: { host } }, response => resolve(response.resume().statusCode)).on('error', reject);
      return promise;
    };
    const hosts = ['10.0.0.7:8000', 'localhost', 'relay.internal:8000', 'public.example', 'evil.example', 'x.relay.internal'];
    assert.deepEqual(await Promise.all(hosts.map(statusFor)), [200, 200, 200, 200, 421, 421]);
    service.child.kill('SIGTERM');
    assert.equal((await service.ended).code, 0);
  });

  test('the probes listen at HOPLINE_PROBE_PORT and HOPLINE_PROBE_HOST', async () => {
    const service = run('well', {
      HOPLINE_HOST: '127.0.0.2',
      HOPLINE_PROBE_HOST: '127.0.0.3',
      HOPLINE_PROBE_PORT: '0',
      HOPLINE_PORT: '1',
    });
    const { url } = await service.line('probes listening');
    assert.match(String(url), /^http:\/\/127\.0\.0\.3:\d{2,}$/);
    await service.line('ready');
    assert.equal((await fetch(`${url}/readyz`)).status, 200);
    service.child.kill('SIGTERM');
    assert.equal((await service.ended).code, 0);
  });

  const LAG = { HOPLINE_LOOP_LAG_MS_MAX: '1000' };
  const livez = async (service: Run) => (await fetch(`${(await service.line('probes listening')).url}/livez`)).status;

  test('a process that was stopped for longer than the loop limit still counts as alive', async () => {
    const service = run('well', LAG);
    await service.line('ready');
    service.child.kill('SIGSTOP');
    const stoppedAt = performance.now();
    await until(() => performance.now() - stoppedAt > 2_000);
    service.child.kill('SIGCONT');
    assert.equal(await livez(service), 200);
    service.child.kill('SIGTERM');
    assert.equal((await service.ended).code, 0);
  });

  test('a process whose loop was blocked by its own work does not count as alive', async () => {
    const service = run('spins', LAG);
    await service.line('ready');
    service.child.stdin?.write('\n');
    // One of the requests arrives during the block, and is answered at its end.
    await until(async () => (await livez(service)) === 503);
    service.child.kill('SIGTERM');
    assert.equal((await service.ended).code, 0);
  });

  test('SIGINT drains too', async () => {
    const service = run('well');
    await service.line('ready');
    service.child.kill('SIGINT');
    assert.equal((await service.ended).code, 0);
    assert.deepEqual(messages(service).slice(-5), DRAIN);
  });

  test('the end of the lifeline drains; without the setting standard input is ignored', async () => {
    const held = run('well', { HOPLINE_STDIN_LIFELINE: '1' });
    const free = run('well');
    await Promise.all([held.line('ready'), free.line('ready')]);
    held.child.stdin?.end();
    free.child.stdin?.end();
    assert.equal((await held.ended).code, 0);
    assert.equal(held.lines.find(({ msg }) => msg === 'draining')?.reason, 'lifeline');
    assert.equal(free.child.exitCode, null);
    assert.equal(messages(free).includes('draining'), false);
    free.child.kill('SIGKILL');
    await free.ended;
  });

  test('a service drains and exits when its launcher is killed and all its pipes close', async () => {
    const service = run('well', { HOPLINE_STDIN_LIFELINE: '1' });
    await service.line('ready');
    for (const pipe of service.child.stdio) pipe?.destroy();
    assert.equal((await service.ended).code, 0);
  });

  test('an uncaught error is logged and ends with code 1, without a drain', async () => {
    for (const mode of ['throws', 'rejects-without-reason']) {
      const service = run(mode);
      assert.equal((await service.ended).code, 1, mode);
      const fatal = service.lines.find(({ level }) => level === 'fatal');
      assert.equal(fatal?.msg, 'uncaught error');
      if (mode === 'throws') assert.equal(fatal?.err?.message, 'uncaught by purpose');
      assert.equal(messages(service).includes('close begins'), false);
    }
  });

  test('a failed start is logged and ends with code 1', async () => {
    const service = run('start-fails');
    assert.equal((await service.ended).code, 1);
    assert.equal((await service.line('start failed')).err?.message, 'connection refused');
  });

  test('an invalid environment is reported completely on standard error, without secrets, with its own exit code', async () => {
    const service = run('well', {
      HOPLINE_PORT: 'eighty',
      HOPLINE_LOG_LEVEL: 'loud',
      TEST_KEY: 'PLANTED',
      HOPLINE_DRAIN_MAX_MS: '1',
    });
    const { code, stderr } = await service.ended;
    assert.equal(code, EXIT_CONFIG);
    assert.match(
      stderr,
      /^test-service: 4 settings are invalid:\n {2}HOPLINE_PORT is "eighty", .*\n {2}HOPLINE_LOG_LEVEL is "loud", .*\n {2}TEST_KEY .*\n {2}HOPLINE_DRAIN_MAX_MS is not a setting/,
    );
    assert.doesNotMatch(stderr, /PLANTED| {4}at /);
    const telemetry = run('well', { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' });
    assert.equal((await telemetry.ended).code, EXIT_CONFIG);
  });

  test('an unknown HOPLINE_ variable stops the service with one sentence and the nearest name', async () => {
    const { code, stderr } = await run('well', { HOPLINE_LOG_LEVLE: 'debug' }).ended;
    assert.equal(code, EXIT_CONFIG);
    assert.equal(stderr, 'test-service: HOPLINE_LOG_LEVLE is not a setting of Hopline; did you mean HOPLINE_LOG_LEVEL?\n');
  });

  test('a wrong setting that the start finds is reported with the exit code for settings and without a stack', async () => {
    const service = run('wrong-file');
    const { code, stderr } = await service.ended;
    assert.equal(code, EXIT_CONFIG);
    assert.equal(stderr, 'test-service: TEST_FILE: the file cannot be read (ENOENT)\n');
    assert.equal(messages(service).includes('start failed'), false);
  });

  test('the sentence about a wrong setting is the last line if log and standard error are one file, as with npm start', async t => {
    const folder = mkdtempSync(join(tmpdir(), 'hopline-log-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'service.log');
    const log = openSync(path, 'a');
    const args = [SCRIPT, JSON.stringify({ HOPLINE_PORT: '0', HOPLINE_INSTANCE: 'test-1' }), 'wrong-file'];
    const child = spawn(process.execPath, args, { env: compileCache(), stdio: ['ignore', log, log] });
    closeSync(log);
    await once(child, 'exit');
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
    assert.match(lines[0]!, /"msg":"starting"/);
    assert.equal(lines.at(-1), 'test-service: TEST_FILE: the file cannot be read (ENOENT)');
  });

  test('HOPLINE_DRAIN_MS_MAX bounds the drain: the process ends with code 1', async () => {
    const service = run('close-hangs', { HOPLINE_DRAIN_MS_MAX: '200' });
    await service.line('ready');
    const started = performance.now();
    service.child.kill('SIGTERM');
    assert.equal((await service.ended).code, 1);
    assert.ok(performance.now() - started < 10_000);
    assert.deepEqual(messages(service).slice(-3), ['close begins', 'drain failed', 'stopped']);
  });

  test('a failed close still flushes telemetry and exits with code 1', async () => {
    const service = run('close-fails');
    await service.line('ready');
    service.child.kill('SIGTERM');
    assert.equal((await service.ended).code, 1);
    assert.equal((await service.line('drain failed')).err?.message, 'not closed');
  });

  test('a second signal exits at once', async () => {
    const service = run('close-hangs');
    await service.line('ready');
    service.child.kill('SIGTERM');
    await service.line('close begins');
    service.child.kill('SIGTERM');
    assert.equal((await service.ended).code, 1);
    assert.equal(messages(service).at(-1), 'second signal: exiting at once');
  });

  test('a signal during the start closes the started service and exits with code 0', async () => {
    const slow = run('slow-start');
    await slow.line('probes listening');
    slow.child.kill('SIGTERM');
    assert.equal((await slow.ended).code, 0);
    assert.ok(messages(slow).includes('close ends'));
    const follows = run('start-follows-signal');
    const { url } = await follows.line('probes listening');
    assert.equal((await fetch(`${url}/readyz`)).status, 503);
    follows.child.kill('SIGTERM');
    assert.equal((await follows.ended).code, 0);
    assert.deepEqual(messages(follows).slice(-3), ['draining', 'signal aborted', 'stopped']);
  });
});
