import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Screen } from './screen.ts';
import { type StreamEvent, StreamPrinter } from './stream-printer.ts';

function printed(events: StreamEvent[]): { text: string; printer: StreamPrinter } {
  let text = '';
  const printer = new StreamPrinter(new Screen({ write: piece => (text += piece) }));
  for (const event of events) printer.print(event);
  return { text, printer };
}

const chunk = (artifactId: string, name: string, text: string, append: boolean): StreamEvent => ({
  kind: 'artifact-update',
  append,
  artifact: { artifactId, name, parts: [{ kind: 'text', text }] },
});

test('text runs on under one heading; another artifact gets its own, and what repeats is only named', () => {
  const { text, printer } = printed([
    { kind: 'task', id: 't-1', status: { state: 'submitted' } },
    chunk('a', 'streaming_result', 'Hel', false),
    chunk('a', 'streaming_result', 'lo', true),
    chunk('b', 'streaming_result', 'Two\n', false),
    chunk('a', 'streaming_result', '!', true),
    chunk('c', 'partial_result', 'Hello!\n\nTwo\n', false),
    { kind: 'status-update', status: { state: 'completed' }, final: true },
  ]);
  const lines = [
    'task t-1: submitted',
    '── streaming_result',
    'Hello',
    '── streaming_result',
    'Two',
    '── streaming_result',
    '!',
    '── partial_result',
    '(12 characters, equal to the text streamed above)',
    'task completed',
    '',
  ];
  assert.equal(text, lines.join('\n'));
  assert.equal(printer.taskId, 't-1');
  assert.ok(printer.ended);
});

test('the same artifact under another name gets a heading of its own', () => {
  const { text } = printed([chunk('p', 'plan_streaming', '⟦plan⟧', false), chunk('p', 'plan_update', '⟦plan⟧', false)]);
  assert.equal(text, '── plan_streaming\n⟦plan⟧\n── plan_update\n(6 characters, equal to the text streamed above)\n');
});

test('a whole text that differs from what was streamed is printed, not called a repeat', () => {
  const { text } = printed([
    chunk('a', 'streaming_result', 'Hello', false),
    chunk('b', 'partial_result', 'Hello, changed', false),
  ]);
  assert.match(text, /── partial_result\nHello, changed$/);
});

test('a failed task shows its reason; a stream that is cut has not ended', () => {
  const failed: StreamEvent = {
    kind: 'status-update',
    status: { state: 'failed', message: { parts: [{ kind: 'text', text: 'agent is down' }] } },
    final: true,
  };
  assert.match(printed([failed]).text, /task failed: agent is down/);
  assert.ok(!printed([chunk('a', 'x', 'text', false)]).printer.ended);
});

test('control characters of an agent do not reach the terminal, colours are for terminals only', () => {
  const { text } = printed([chunk('a', 'x', '\x1b[2Jred\x07\ttab\n', false)]);
  assert.equal(text, '── x\n[2Jred\ttab\n');
  let coloured = '';
  new Screen({ isTTY: true, write: piece => (coloured += piece) }).heading('head');
  assert.equal(coloured, '\x1b[1;36mhead\x1b[0m\n');
});

test('a notice in the middle of a text starts its own line', () => {
  let text = '';
  const screen = new Screen({ write: piece => (text += piece) });
  screen.text('half a');
  screen.line('relay-1 ended');
  screen.text(' line');
  assert.equal(text, 'half a\nrelay-1 ended\n line');
});
