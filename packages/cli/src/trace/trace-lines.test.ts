import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endOf, waterfallOf } from '@hopline/task-audit/waterfall';
import { auditLines, CHUNK_LINES_MAX, detailLines, traceLines, verdictOf } from './trace-lines.ts';
import { STARTED_AT, taskReport } from './trace-report.test-kit.ts';

test('a waterfall has the hops, texts, repeated attempts, takeovers and gaps of a task, with their causes [S2-41]', () => {
  assert.deepEqual(
    waterfallOf(taskReport(6)).map(({ kind, label, fromMs, toMs, note }) => [kind, label, fromMs, toMs, note]),
    [
      ['hop', 'accept', 0, 12, '12 ms'],
      ['gap', 'gap', 10, 5_100, '5.09 s: a relay took over'],
      ['hop', 'agent argocd', 50, 200, '110 ms'],
      ['tool', 'tool argocd look_up', 60, 100, '40 ms'],
      ['text', 'text argocd', 200, 200, '0 ms, 0 of 1 token stored in 0 chunks'],
      ['attempt', 'attempt 2 argocd', 4_000, 5_070, '1.07 s, after the attempt before failed or its worker died'],
      ['takeover', 'takeover', 4_900, 5_100, 'relay-2-bbbbbbbb: the relay before it died'],
      ['text', 'text argocd', 5_070, 8_100, '3.03 s, 12 tokens in 6 chunks'],
    ],
  );
});

test('a trace that was not sampled is marked, because a tracing backend cannot show it', () => {
  const [kept, dropped] = ['a'.repeat(32), 'b'.repeat(32)];
  const lines = traceLines({ ...taskReport(2), traces: [kept, dropped], unsampled: [dropped] });
  assert.deepEqual(
    lines.filter(line => line.startsWith('trace ')),
    [`trace ${kept}`, `trace ${dropped} (not sampled: only log lines have it)`],
  );
});

test('a turn that is still running ends now, and the row of the silent agent is the slowest hop', () => {
  const report = taskReport(3);
  const path = [
    { hop: 'accept', fromMs: 0, toMs: 50 },
    { hop: 'silence', fromMs: 50, toMs: 600_000, agent: 'argocd' },
  ] as const;
  const costs = [{ hop: 'silence', agent: 'argocd', ms: 599_950, share: 599_950 / 600_000 }] as const;
  const open = { state: 'working', nowMs: 600_000, turns: [{ turn: 1, fromMs: 0, toMs: 600_000, path }], costs: [...costs] };
  const text = traceLines({ ...report, ...open }).join('\n');
  assert.match(text, /^task t working, 5 events in 600\.000 s;/);
  assert.match(text, / {2}silence argocd +\|·+\| 9 m 59 s, no event since\n/);
  assert.match(text, /\nslowest: silence argocd, 9 m 59 s of the 10 m 0 s of the turn \(100 %\)/);
});

test('the first line of a failed task has its reason, and its waterfall only stored facts and attempts that ran', () => {
  const report = taskReport(2);
  const [, , second] = report.producers;
  const late = { ...second!, tokens: 60, lastTokenMs: 126_000, lastMs: 126_000 };
  const { firstTokenMs: _first, lastTokenMs: _last, ...silent } = second!;
  const settled = { ...silent, attempt: 4, tokens: 0, takenMs: 9_000, reason: 'attempts exhausted', state: 'failed' };
  const failed = {
    ...report,
    state: 'failed',
    fault: { agent: 'argocd', reason: 'attempts exhausted' },
    producers: [late, settled],
  };
  assert.match(traceLines(failed)[0]!, /^task t failed \(argocd: attempts exhausted\), 4 events in 10\.000 s;/);
  const rows = waterfallOf(failed).filter(({ kind }) => kind === 'attempt' || kind === 'text');
  assert.deepEqual(
    rows.map(({ label, toMs, note }) => [label, toMs, note.replace(/, after.*/, '')]),
    [
      ['attempt 2 argocd', 5_070, '1.07 s'],
      ['text argocd', 6_603, '1.53 s, 4 of 60 tokens stored in 2 chunks'],
    ],
  );
  assert.equal(endOf(failed), 10_002);
});

test("a producer's text counts only in its own turn, because the next turn reuses the producer ids", () => {
  const report = taskReport(2);
  const ofTurn = (turn: number, ms: number) => ({
    producers: report.producers
      .slice(2)
      .map(one => ({ ...one, turn, firstTokenMs: one.firstTokenMs! + ms, lastTokenMs: one.lastTokenMs! + ms })),
    events: report.events.map(event => ({ ...event, turn, atMs: event.atMs + ms, storedMs: event.storedMs! + ms })),
  });
  const [one, two] = [ofTurn(1, 0), ofTurn(2, 60_000)];
  const trace = { ...report, producers: [...one.producers, ...two.producers], events: [...one.events, ...two.events] };
  const texts = waterfallOf(trace).filter(({ kind }) => kind === 'text');
  assert.deepEqual(
    texts.map(({ turn, fromMs, toMs, note }) => [turn, fromMs, toMs, note]),
    [
      [1, 5_070, 8_100, '3.03 s, 4 tokens in 2 chunks'],
      [2, 65_070, 68_100, '3.03 s, 4 tokens in 2 chunks'],
    ],
  );
});

test('a printed trace has absolute times, the cost of each hop, the hops that the log lacks, and each chunk with its inputs', () => {
  const text = [...traceLines(taskReport(3)), ...detailLines(taskReport(3), false)].join('\n');
  assert.match(text, /^task t completed, 5 events in 10\.000 s; context c\nstarted 2026-11-22T14:00:00\.000Z;/);
  const { length } = '00:00:00.000';
  const time = new Date(STARTED_AT + 4_900);
  const minutes = `${time.getMinutes()}`.padStart(2, '0');
  const takeover = text.split('\n').find(line => line.includes('takeover') && line.includes('|'))!;
  assert.match(takeover.slice(0, length), new RegExp(`^\\d\\d:${minutes}:04\\.900$`));
  assert.match(text, /\nslowest: redelivery argocd, 3\.80 s of the 10\.0 s of the turn \(38 %\)\n/);
  assert.match(text, /\n {2}talk argocd +3\.03 s +30 %\n {2}compose supervisor +1\.90 s +19 %\n/);
  assert.match(text, /\n {2}hold +3 +25 ms +25 ms +25 ms\n/);
  assert.match(text, /not recorded in the log: splice, socket, webhook/);
  assert.match(text, /relay-2-bbbbbbbb: 9 records, from event 2 at \S+; took over at \S+ \(lost\)/);
  assert.match(text, /attempt 1: 1 token, 1 character, 1 other event;/);
  const hops = 'publish 4 ms, hold 25 ms, wait_for_append 1 ms, append 3 ms; 30 ms old';
  assert.ok(text.includes(`response+ of argocd, 4 characters, 2 tokens of inputs 2 to 3, ready, ${hops}`), text);
});

test('a trace lists tokens and cost of models by agent; an unknown number is left out', () => {
  const numbers = { requests: 2, ms: 1_500, inputTokens: 1_100, cachedTokens: 1_000, outputTokens: 50, reasoningTokens: 40 };
  const models = [
    { agent: 'argocd', model: 'lab/large', ...numbers, cost: 0.0012345 },
    { agent: 'supervisor', model: 'm', requests: 1, ms: 20 },
  ];
  const text = traceLines(taskReport(3, { models })).join('\n');
  const priced = '2 requests of 1.50 s in all, 1100 tokens in (1000 cached), 50 out (40 reasoning), cost 0.00123';
  assert.ok(text.includes(`\nmodels\n  argocd lab/large: ${priced}\n  supervisor m: 1 request of 20 ms in all\n`), text);
  assert.doesNotMatch(traceLines(taskReport(3)).join('\n'), /models/);
});

test('the chunks of a long task are folded to one line per run, unless --chunks asks for each', () => {
  const eventLines = (chunks: number, all: boolean) => {
    const printed = detailLines(taskReport(chunks), all);
    return printed.slice(printed.indexOf('events') + 1, printed.findIndex(line => line.startsWith('relay:')) - 1);
  };
  assert.equal(eventLines(CHUNK_LINES_MAX, false).length, CHUNK_LINES_MAX + 2);
  const folded = eventLines(CHUNK_LINES_MAX + 1, false);
  assert.equal(folded.length, 4);
  assert.match(folded[1]!, /^ +2-42 +5\.100 s {2}response of argocd, 41 chunks, 164 characters, 82 tokens, until \d/);
  assert.match(folded[3]!, /--chunks/);
  assert.equal(eventLines(1_000, true).length, 1_002);
});

test('a waterfall fills a wide terminal, and keeps a short bar on a narrow one', () => {
  for (const columns of [60, 120, 200]) {
    const rows = traceLines(taskReport(3), columns).filter(line => line.includes('|'));
    assert.equal(rows.length, waterfallOf(taskReport(3)).length);
    const widths = rows.map(line => line.lastIndexOf('|') - line.indexOf('|'));
    assert.deepEqual(new Set(widths).size, 1);
    assert.ok(widths[0]! > 10 && (columns < 120 || rows.every(line => line.length <= columns)), `${columns}: ${rows.join('\n')}`);
  }
});

test('a task whose beginning is missing is shown as partial, without a verdict on uncounted inputs', () => {
  const report = taskReport(2, { partial: ['facts'] });
  assert.ok(traceLines(report).some(line => line.startsWith('partial facts: ')));
  assert.ok(!traceLines(taskReport(2)).some(line => line.startsWith('partial')));
  const text = { received: 3, accepted: 3, duplicates: 0, pending: 0, rejected: {} };
  const audit = { ...report.audit, tallies: { text } as never, unaccounted: { text: 2 } };
  assert.match(auditLines(audit).join('\n'), /2 UNACCOUNTED/);
  assert.match(verdictOf({ ...audit, tallies: {} as never }), /UNACCOUNTED/);
  const incomplete = auditLines({ ...audit, incomplete: true }).join('\n');
  assert.doesNotMatch(incomplete, /UNACCOUNTED/);
  assert.match(incomplete, /cannot be determined/);
});
