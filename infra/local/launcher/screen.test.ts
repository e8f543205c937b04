import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Screen } from './screen.ts';

function screenOf(isTTY: boolean, environment: Record<string, string> = { TERM: 'xterm-256color' }) {
  const written: string[] = [];
  return { screen: new Screen({ isTTY, write: text => written.push(text) }, environment), text: () => written.join('') };
}

test('control characters of an agent do not reach the terminal', () => {
  const { screen, text } = screenOf(false);
  screen.answer('\x1b[2Jred\x07\ttab\n');
  screen.heading('── \x1b[2Jname');
  assert.equal(text(), '[2Jred\ttab\n── [2Jname\n');
});

test('colors are written to terminals only', () => {
  for (const [isTTY, expected] of [
    [true, '\x1b[1;36mhead\x1b[0m\n\x1b[2mnote\x1b[0m\n\x1b[31mwarning\x1b[0m\n'],
    [false, 'head\nnote\nwarning\n'],
  ] as const) {
    const { screen, text } = screenOf(isTTY);
    screen.heading('head');
    screen.note('note');
    screen.warn('warning');
    assert.equal(text(), expected);
  }
});

test('NO_COLOR and FORCE_COLOR take precedence over the terminal', () => {
  for (const [isTTY, environment, colored] of [
    [true, { TERM: 'xterm-256color', NO_COLOR: '1' }, false],
    [false, { FORCE_COLOR: '1' }, true],
    [true, { TERM: 'dumb' }, false],
  ] as const) {
    const { screen, text } = screenOf(isTTY, environment);
    screen.note('note');
    assert.equal(text(), colored ? '\x1b[2mnote\x1b[0m\n' : 'note\n', JSON.stringify(environment));
  }
});

test('notices about the cluster wait for the end of an answer, in order', () => {
  const { screen, text } = screenOf(false);
  const release = screen.holdNotices();
  screen.answer('half a');
  screen.notice('relay-1 ended');
  screen.warning('run.json cannot be written');
  screen.answer(' line');
  screen.note('done');
  release();
  screen.notice('relay-1 restarted');
  release();
  assert.equal(text(), 'half a line\ndone\nrelay-1 ended\nrun.json cannot be written\nrelay-1 restarted\n');
});

test('notices of a process that fails repeatedly are shown even during an answer', () => {
  const { screen, text } = screenOf(false);
  screen.holdNotices();
  for (let count = 1; count <= 51; count += 1) screen.notice(`${count}`);
  assert.deepEqual(
    text().trim().split('\n'),
    Array.from({ length: 51 }, (_, index) => `${index + 1}`),
  );
});

test('a notice within a text starts on its own line', () => {
  const { screen, text } = screenOf(false);
  screen.answer('half a');
  screen.line('relay-1 ended');
  screen.answer(' line');
  assert.equal(text(), 'half a\nrelay-1 ended\n line');
});
