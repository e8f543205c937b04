import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'node:test';
import { promisify } from 'node:util';
import { trace } from '@opentelemetry/api';
import { listen } from '../../../test/kit/listen.ts';
import { REFUSED_ORIGIN } from '../../../test/kit/refused.ts';
import { exportersFrom } from './exporters.ts';
import { startHop } from './hop-span.ts';
import { createLogger } from './logger.ts';
import { ATTR, COUNT, invokeAgentSpan, SPAN } from './names.ts';
import {
  ATTRIBUTE_CHARS_MAX,
  SPAN_ATTRIBUTES_MAX,
  SPAN_LINKS_MAX,
  startTelemetry,
  TELEMETRY_SHUTDOWN_MS_MAX,
} from './start-telemetry.ts';

type Received = { method: string | undefined; url: string | undefined; type: string | undefined; body: Buffer };

async function otlpReceiver() {
  const received: Received[] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    const body = Buffer.concat(await request.toArray());
    received.push({ method: request.method, url: request.url, type: request.headers['content-type'], body });
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
  });
  const url = await listen(server);
  const close = async () => {
    server.closeAllConnections();
    await new Promise(resolve => server.close(resolve));
  };
  return { received, url, close };
}

/** Runs a script in its own process with only `env`; its standard output must be JSON lines. */
async function run(script: string, args: string[], env: Record<string, string>): Promise<Record<string, unknown>[]> {
  const all = ['--input-type=module', '-e', script, new URL('./index.ts', import.meta.url).href, ...args];
  const { stdout } = await promisify(execFile)(process.execPath, all, { env });
  return stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line));
}

const tracesUrlOf = (env: Record<string, string>) => exportersFrom(env).tracesUrl;

const identity = { service: 'relay', version: '1.2.3', instance: 'relay-1' };

test('spans reach an OTLP receiver as protobuf, with the resource and without content', async () => {
  const receiver = await otlpReceiver();
  const telemetry = await startTelemetry({ ...identity, env: { OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.url}/` } });
  try {
    assert.equal(telemetry.tracesUrl, `${receiver.url}/v1/traces`);
    const hop = startHop(invokeAgentSpan('demo'), {
      kind: 'client',
      parent: {},
      attributes: { [ATTR.a2aTask]: 'task-of-the-test' },
    });
    hop.set({ [ATTR.outcome]: 'x'.repeat(ATTRIBUTE_CHARS_MAX + 1) });
    hop.count(COUNT.tokens, 661);
    startHop(SPAN.sendPushNotification, { kind: 'producer', parent: hop.carrier() }).end();
    hop.end();
    const wide = Array.from({ length: SPAN_ATTRIBUTES_MAX + 1 }, (_, n) => [`wide-${n}-`, n]);
    const links = Array.from({ length: SPAN_LINKS_MAX + 1 }, () => ({
      context: { traceId: '6c'.repeat(16), spanId: '6c'.repeat(8), traceFlags: 1 },
    }));
    trace
      .getTracer('any')
      .startSpan('wide', { attributes: Object.fromEntries(wide), links })
      .end();
    await telemetry.shutdown();
    const all = Buffer.concat(receiver.received.map(request => request.body)).toString('latin1');
    assert.deepEqual(
      [...new Set(receiver.received.map(({ method, url, type }) => `${method} ${url} ${type}`))],
      ['POST /v1/traces application/x-protobuf'],
    );
    const expected = [
      'invoke_agent demo',
      SPAN.sendPushNotification,
      'task-of-the-test',
      'hopline.tokens',
      'service.namespace',
      'relay-1',
      '1.2.3',
    ];
    for (const word of expected) assert.ok(all.includes(word), word);
    assert.ok(all.includes('x'.repeat(ATTRIBUTE_CHARS_MAX)));
    assert.ok(!all.includes('x'.repeat(ATTRIBUTE_CHARS_MAX + 1)));
    assert.ok(!all.includes('process.command'));
    assert.equal(all.match(/wide-\d+-/g)?.length, SPAN_ATTRIBUTES_MAX);
    // Trace ids travel as bytes: 16 times 'l' for each link.
    assert.equal(all.match(/l{16}/g)?.length, SPAN_LINKS_MAX);
  } finally {
    await receiver.close();
  }
});

test('without an endpoint only /metrics exists and no span is recorded', async () => {
  const before = process.getActiveResourcesInfo().sort();
  const telemetry = await startTelemetry({ ...identity, env: {} });
  assert.equal(telemetry.tracesUrl, undefined);
  assert.equal(trace.getTracer('any').startSpan('any').isRecording(), false);
  assert.deepEqual(process.getActiveResourcesInfo().sort(), before);
  telemetry.metrics.tokens.add(5, { agent: 'demo' });
  const text = await telemetry.metricsText();
  assert.match(text, /^target_info\{.*service_name="hopline-relay".*\} 1$/m);
  assert.match(text, /^target_info\{.*service_instance_id="relay-1".*\} 1$/m);
  assert.match(text, /^hopline_tokens_total\{service="relay",agent="demo"\} 5$/m);
  const [, startedAt] = /^process_start_time_seconds\{service="relay"\} ([\d.]+)$/m.exec(text)!;
  assert.ok(Math.abs(Number(startedAt) - performance.timeOrigin / 1_000) < 1);
  assert.match(text, /^process_memory_usage_bytes\{service="relay"\} \d{7,}$/m);
  assert.match(text, /^nodejs_eventloop_utilization_ratio\{service="relay"\} [\d.e-]+$/m);
  await telemetry.shutdown();
});

test('without an endpoint the tracing SDK and gRPC are not imported', async () => {
  const script = `
    import { registerHooks } from 'node:module';
    const urls = [];
    registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) });
    const { startTelemetry } = await import(process.argv[1]);
    await (await startTelemetry({ service: 's', version: '1', instance: 'i', env: {} })).shutdown();
    console.log(JSON.stringify({ all: urls.length, tracing: urls.filter(url => /sdk-node|sdk-trace|grpc|otlp/.test(url)) }));`;
  const [loaded] = await run(script, [], {});
  assert.ok(Number(loaded?.all) > 50);
  assert.deepEqual(loaded?.tracing, []);
});

test('an unreachable collector is reported in one log line at run time and one at shutdown, without content', async () => {
  const script = `
    const { createLogger, SPAN, startHop, startTelemetry } = await import(process.argv[1]);
    const env = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: process.argv[2] };
    const logged = Promise.withResolvers();
    const destination = { write: line => (process.stdout.write(line), logged.resolve()) };
    const log = createLogger({ service: 's', instance: 'i', level: 'info', destination });
    const telemetry = await startTelemetry({ service: 's', version: '1', instance: 'i', log, env });
    const hop = () => startHop(SPAN.sendPushNotification, { kind: 'producer', attributes: { 'a2a.task.id': 'PLANTED' } }).end();
    hop();
    await Promise.race([logged.promise, new Promise(resolve => setTimeout(resolve, 20_000))]);
    hop();
    await telemetry.shutdown();
    process.exit(0);`;
  // The SDK reads its own settings from the process environment: here it sends after 20 ms and times out after 300 ms.
  const env = { OTEL_EXPORTER_OTLP_TIMEOUT: '300', OTEL_BSP_SCHEDULE_DELAY: '20' };
  const lines = await run(script, [`${REFUSED_ORIGIN}/v1/traces`], env);
  assert.deepEqual(
    lines.map(({ level, reason, spans_lost, msg }) => [level, reason, spans_lost, msg]),
    [
      ['warn', 'ECONNREFUSED', 1, 'telemetry export failed'],
      ['warn', 'ECONNREFUSED', 1, 'last spans not exported'],
    ],
  );
  assert.doesNotMatch(JSON.stringify(lines), /PLANTED/);
});

/** Spans of a process that does not wait for its collector: many times its queue. */
const SPANS = 20_000;
const QUEUE_SPANS = 256;
/** Far below the 40 MB of all spans. */
const GROWN_BYTES_MAX = 12 * 1024 * 1024;

for (const [collector, behaviour, reason] of [
  ['dead', undefined, 'ECONNREFUSED'],
  ['hanging', () => {}, 'timeout'],
  ['slow', response => setTimeout(() => response.writeHead(200).end(), 400), 'queue_full'],
  ['refusing', response => response.writeHead(400).end(), 'http_400'],
  // The SDK does not ask again after a time that is beyond its timeout.
  ['busy', response => response.writeHead(429, { 'retry-after': '3600' }).end(), 'http_429_502_503_504'],
] satisfies [string, ((response: ServerResponse) => void) | undefined, string][]) {
  test(`a ${collector} collector costs bounded memory, and one warning has the cause and the number of lost spans`, async () => {
    let accepted = 0;
    const server = createServer(async (request, response) => {
      const body = Buffer.concat(await request.toArray().catch(() => []));
      if (reason === 'queue_full') accepted += body.toString('latin1').split(SPAN.sendPushNotification).length - 1;
      behaviour?.(response);
    });
    await listen(server);
    const { port } = server.address() as AddressInfo;
    const script = `
      const { setImmediate: turn } = await import('node:timers/promises');
      (await import('node:v8')).setFlagsFromString('--expose-gc');
      const gc = (await import('node:vm')).runInNewContext('gc');
      const { createLogger, SPAN, startHop, startTelemetry } = await import(process.argv[1]);
      const warned = Promise.withResolvers();
      const destination = { write: line => (process.stdout.write(line), warned.resolve()) };
      const log = createLogger({ service: 's', instance: 'i', level: 'info', destination });
      const telemetry = await startTelemetry({ service: 's', version: '1', instance: 'i', log, env: process.env });
      gc();
      const before = process.memoryUsage().heapUsed;
      let grownBytes = 0;
      for (let n = 1; n <= ${SPANS}; n++) {
        startHop(SPAN.sendPushNotification, { kind: 'producer', parent: {} }).end();
        if (n % 100 === 0) await turn();
      }
      gc();
      grownBytes = process.memoryUsage().heapUsed - before;
      const held = setTimeout(() => {}, 60_000);
      await warned.promise;
      await telemetry.shutdown();
      console.log(JSON.stringify({ grownBytes }));
      process.exit(0);`;
    const lines = await run(script, [], {
      OTEL_EXPORTER_OTLP_ENDPOINT: behaviour === undefined ? REFUSED_ORIGIN : `http://127.0.0.1:${port}`,
      // A collector that answers does so within this time, even on a busy machine.
      OTEL_EXPORTER_OTLP_TIMEOUT: /queue_full|http/.test(reason) ? '20000' : '300',
      OTEL_BSP_MAX_QUEUE_SIZE: String(QUEUE_SPANS),
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '64',
    });
    server.closeAllConnections();
    server.close();
    const [warning, ...rest] = lines;
    assert.deepEqual([warning?.msg, warning?.reason], ['telemetry export failed', reason], JSON.stringify(lines));
    assert.ok(Number(warning?.spans_lost) > 100, 'the warning counts more than the first loss');
    assert.ok(rest.filter(({ msg }) => msg !== 'last spans not exported').length === 1, JSON.stringify(rest));
    const lost = lines.reduce((sum, line) => sum + Number(line.spans_lost ?? 0), 0);
    assert.equal(lost + accepted, SPANS);
    assert.ok(Number(rest.at(-1)?.grownBytes) < GROWN_BYTES_MAX, `${rest.at(-1)?.grownBytes} bytes`);
  });
}

for (const signal of ['TRACES', 'METRICS', 'LOGS']) {
  test(`a collector that refuses only ${signal.toLowerCase()} is reported in a warning with its signal and status`, async () => {
    const server = createServer((request, response) => request.resume().once('end', () => response.writeHead(400).end()));
    const origin = await listen(server);
    const script = `
      const { createLogger, SPAN, startHop, startTelemetry } = await import(process.argv[1]);
      const warned = Promise.withResolvers();
      const destination = { write: line => (process.stdout.write(line), line.includes('http_400') && warned.resolve()) };
      const log = createLogger({ service: 's', instance: 'i', level: 'info', destination });
      await startTelemetry({ service: 's', version: '1', instance: 'i', log, env: process.env });
      startHop(SPAN.sendPushNotification, { kind: 'producer', parent: {} }).end();
      log.info('a line');
      await Promise.race([warned.promise, new Promise(resolve => setTimeout(resolve, 20_000))]);
      process.exit(0);`;
    const none = { OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none', OTEL_LOGS_EXPORTER: 'none' };
    const lines = await run(script, [], {
      ...none,
      [`OTEL_${signal}_EXPORTER`]: 'otlp',
      OTEL_EXPORTER_OTLP_ENDPOINT: origin,
      OTEL_METRIC_EXPORT_INTERVAL: '20',
    });
    server.closeAllConnections();
    server.close();
    const warnings = lines.filter(({ msg }) => msg === 'telemetry export failed');
    assert.deepEqual(
      warnings.map(({ signal, reason, spans_lost }) => [signal, reason, spans_lost]),
      [[signal.toLowerCase(), 'http_400', signal === 'TRACES' ? 1 : 0]],
    );
  });
}

test('spans that a collector rejects of a request that it accepts are counted as lost, and reported', async () => {
  // ExportTraceServiceResponse with partial_success.rejected_spans = 3.
  const answer = Buffer.from([0x0a, 0x02, 0x08, 0x03]);
  const server = createServer((request, response) =>
    request.resume().once('end', () => response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end(answer)),
  );
  const origin = await listen(server);
  const script = `
    const { createLogger, SPAN, startHop, startTelemetry } = await import(process.argv[1]);
    const warned = Promise.withResolvers();
    const destination = { write: line => (process.stdout.write(line), warned.resolve()) };
    const log = createLogger({ service: 's', instance: 'i', level: 'info', destination });
    const telemetry = await startTelemetry({ service: 's', version: '1', instance: 'i', log, env: process.env });
    for (let n = 0; n < 4; n++) startHop(SPAN.sendPushNotification, { kind: 'producer', parent: {} }).end();
    const held = setTimeout(() => {}, 60_000);
    await warned.promise;
    const lost = /^hopline_spans_lost_total.*reason="export_failed"} (\\d+)$/m.exec(await telemetry.metricsText())[1];
    console.log(JSON.stringify({ lost }));
    process.exit(0);`;
  const lines = await run(script, [], { OTEL_EXPORTER_OTLP_ENDPOINT: origin });
  server.closeAllConnections();
  server.close();
  assert.deepEqual(
    lines.map(({ reason, spans_lost, lost }) => [reason, spans_lost, lost]),
    [
      ['rejected_by_collector', 3, undefined],
      [undefined, undefined, '3'],
    ],
  );
});

test('an unresponsive collector does not delay the shutdown', async () => {
  const silent = createServer(() => {});
  const origin = await listen(silent);
  const script = `
    const { SPAN, startHop, startTelemetry } = await import(process.argv[1]);
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: process.argv[2] };
    const telemetry = await startTelemetry({ service: 's', version: '1', instance: 'i', env });
    startHop(SPAN.sendPushNotification, { kind: 'producer' }).end();
    const started = performance.now();
    await telemetry.shutdown();
    console.log(JSON.stringify({ elapsedMs: performance.now() - started }));
    process.exit(0);`;
  const [line] = await run(script, [origin], {});
  silent.closeAllConnections();
  await new Promise(resolve => silent.close(resolve));
  const elapsedMs = Number(line?.elapsedMs);
  assert.ok(elapsedMs > TELEMETRY_SHUTDOWN_MS_MAX - 100 && elapsedMs < TELEMETRY_SHUTDOWN_MS_MAX + 5000, `${elapsedMs} ms`);
});

test('the last log lines reach their collector even if the collector of the spans refuses connections', async () => {
  let answered = 0;
  const slow = createServer((request, response) =>
    request.resume().once('end', () =>
      setTimeout(() => {
        // A process that has ended gets no answer.
        if (!response.destroyed) answered += 1;
        response.writeHead(200).end();
      }, 200),
    ),
  );
  const origin = await listen(slow);
  const script = `
    const { createLogger, SPAN, startHop, startTelemetry } = await import(process.argv[1]);
    const log = createLogger({ service: 's', instance: 'i', level: 'info' });
    const telemetry = await startTelemetry({ service: 's', version: '1', instance: 'i', env: process.env, log });
    startHop(SPAN.sendPushNotification, { kind: 'producer', parent: {} }).end();
    log.info('the last line');
    await telemetry.shutdown();
    process.exit(0);`;
  await run(script, [], {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${REFUSED_ORIGIN}/v1/traces`,
    // The SDK does not send a second time within this time.
    OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '100',
    OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: `${origin}/v1/logs`,
    OTEL_LOGS_EXPORTER: 'otlp',
  });
  slow.closeAllConnections();
  await new Promise(resolve => slow.close(resolve));
  assert.equal(answered, 1);
});

test('the endpoint follows the rules of the OpenTelemetry environment', () => {
  assert.equal(tracesUrlOf({}), undefined);
  assert.equal(tracesUrlOf({ OTEL_EXPORTER_OTLP_ENDPOINT: '' }), undefined);
  assert.equal(tracesUrlOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318' }), 'http://c:4318/v1/traces');
  assert.equal(tracesUrlOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318/base/' }), 'http://c:4318/base/v1/traces');
  const both = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://t/in' };
  assert.equal(tracesUrlOf(both), 'https://t/in');
  assert.equal(tracesUrlOf({ ...both, OTEL_SDK_DISABLED: 'true' }), undefined);
  assert.equal(tracesUrlOf({ ...both, OTEL_TRACES_EXPORTER: 'none' }), undefined);
});

test('an invalid endpoint is an error at start that does not quote it', () => {
  assert.throws(
    () => tracesUrlOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4317', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }),
    /http\/protobuf/,
  );
  for (const endpoint of ['collector:4318', 'no url', 'ftp://u:PLANTED@h']) {
    assert.throws(
      () => tracesUrlOf({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint }),
      (error: Error) => /must be an http:\/\/ or https:\/\/ URL/.test(error.message) && !/PLANTED/.test(error.message),
    );
  }
});

test('invalid headers for a collector are an error at start, which names the setting but does not quote the headers', () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318' };
  for (const headers of ['', 'api-key=PLANTED', 'a=b, authorization=Basic%20PLANTED==', 'a='])
    assert.equal(tracesUrlOf({ ...endpoint, OTEL_EXPORTER_OTLP_HEADERS: headers }), 'http://c:4318/v1/traces');
  for (const headers of ['PLANTED', '=PLANTED', 'api-key=PLANTED“', 'api-key=PLANTED%0A', 'api-key=PLANTED%', 'a=b,PLANTED'])
    for (const variable of ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'])
      assert.throws(
        () => tracesUrlOf({ ...endpoint, [variable]: headers }),
        (error: Error) => error.message.startsWith(`${variable} must be a list name=value`) && !/PLANTED/.test(error.message),
      );
});

test('a sampler that the SDK would ignore is an error at start, because it would then export every trace', () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318' };
  const start = (sampler: string, ratio?: string) =>
    exportersFrom({ ...endpoint, OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: ratio });
  for (const [sampler, ratio] of [
    ['', 'none'],
    ['always_on'],
    ['parentbased_always_off'],
    ['parentbased_traceidratio', '0.01'],
  ] as const)
    assert.equal(start(sampler, ratio).tracesUrl, 'http://c:4318/v1/traces');
  for (const ratio of ['0', ' 1 ', '1e-3']) assert.ok(start('traceidratio', ratio).tracesUrl);
  for (const sampler of ['ratio', 'parent_based', 'TraceIdRatio', ' traceidratio', 'jaeger_remote'])
    assert.throws(() => start(sampler, '0.1'), /^Error: OTEL_TRACES_SAMPLER must be one of always_on, /);
  for (const ratio of [undefined, '', '1%', '5', '-0.1', '0,01'])
    assert.throws(() => start('parentbased_traceidratio', ratio), /^Error: OTEL_TRACES_SAMPLER_ARG must be a share from 0 to 1/);
  assert.deepEqual(exportersFrom({ OTEL_TRACES_SAMPLER: 'ratio' }), { servesMetrics: true });
});

test('each signal goes where its exporter is set; an unknown exporter is refused', () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318' };
  assert.deepEqual(exportersFrom({}), { servesMetrics: true });
  assert.deepEqual(exportersFrom({ ...endpoint, OTEL_METRICS_EXPORTER: 'prometheus,otlp', OTEL_LOGS_EXPORTER: 'otlp' }), {
    servesMetrics: true,
    tracesUrl: 'http://c:4318/v1/traces',
    metricsUrl: 'http://c:4318/v1/metrics',
    logsUrl: 'http://c:4318/v1/logs',
  });
  assert.deepEqual(exportersFrom({ OTEL_METRICS_EXPORTER: 'otlp', OTEL_METRIC_EXPORT_INTERVAL: '5000' }), {
    servesMetrics: false,
    metricsUrl: 'http://localhost:4318/v1/metrics',
    metricsIntervalMs: 5000,
  });
  assert.deepEqual(exportersFrom({ ...endpoint, OTEL_METRICS_EXPORTER: 'none', OTEL_TRACES_EXPORTER: 'none' }), {
    servesMetrics: false,
  });
  for (const signal of ['TRACES', 'METRICS', 'LOGS']) {
    assert.throws(() => exportersFrom({ [`OTEL_${signal}_EXPORTER`]: 'zipkin' }), new RegExp(`OTEL_${signal}_EXPORTER must be`));
    assert.throws(
      () => exportersFrom({ [`OTEL_${signal}_EXPORTER`]: 'none,otlp' }),
      /"none" cannot be combined with other exporters/,
    );
  }
});

test('log lines reach the collector redacted, with their trace, beside standard output', async () => {
  const receiver = await otlpReceiver();
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const log = createLogger({ service: 'relay', instance: 'relay-1', level: 'info', destination });
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_LOGS_EXPORTER: 'otlp', OTEL_METRICS_EXPORTER: 'otlp' };
  const telemetry = await startTelemetry({ ...identity, env, log });
  try {
    const hop = startHop(SPAN.sendPushNotification, { kind: 'client', parent: {} });
    hop.run(() => log.child({ task_id: 'task-1' }).warn({ err: new Error('Bearer PLANTED'), attempt: 2 }, 'webhook abandoned'));
    hop.end();
    log.debug('below the level');
    await telemetry.shutdown();
    const bodyOf = (path: string) =>
      Buffer.concat(receiver.received.filter(({ url }) => url === path).map(({ body }) => body)).toString('latin1');
    const logs = bodyOf('/v1/logs');
    for (const word of ['webhook abandoned', 'task-1', 'exception.message', 'hopline-relay'])
      assert.ok(logs.includes(word), word);
    const traceId = Buffer.from(String(JSON.parse(lines[0]!).trace_id), 'hex').toString('latin1');
    assert.ok(logs.includes(traceId));
    assert.ok(!logs.includes('PLANTED') && !logs.includes('below the level'));
    assert.equal(lines.filter(line => line.includes('webhook abandoned')).length, 1);
    assert.ok(bodyOf('/v1/metrics').includes('process.cpu.time'));
  } finally {
    await receiver.close();
  }
});
