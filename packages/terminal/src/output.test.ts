import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasColors, Output, type Sink } from './output.ts';

function screen(outTTY: boolean, errTTY: boolean, environment: Record<string, string> = { TERM: 'xterm' }) {
  const written: string[] = [];
  const sink = (name: string, isTTY: boolean): Sink => ({ isTTY, write: text => written.push(`${name}:${text}`) });
  return { written, output: new Output(sink('out', outTTY), sink('err', errTTY), environment) };
}

const HOSTILE = 'a\x1b[2Jb\x07\x9bc\td\n';

test('a pipe receives the answer byte for byte, without notes or an added line end', () => {
  const { written, output } = screen(false, true);
  output.answer(HOSTILE);
  output.answer('');
  output.answer('end');
  output.note('working');
  output.end();
  assert.deepEqual(written, [`out:${HOSTILE}`, 'out:end']);
});

test('a terminal receives no control characters, notes on their own lines, and a final line end', () => {
  const { written, output } = screen(true, true);
  output.answer(HOSTILE);
  output.note('one');
  output.answer('more');
  output.note('two\x1b[2J');
  output.answer('more');
  output.end();
  output.end();
  assert.deepEqual(written, [
    'out:a[2Jbc\td\n',
    'err:\x1b[2mone\x1b[0m\n',
    'out:more',
    'out:\n',
    'err:\x1b[2mtwo[2J\x1b[0m\n',
    'out:more',
    'out:\n',
  ]);
});

test('warnings and artifacts are always written, colors only on a terminal without NO_COLOR', () => {
  for (const [tty, environment, expected] of [
    [true, { TERM: 'xterm' }, 'err:\x1b[31mno\x1b[0m\n'],
    [true, { TERM: 'xterm', NO_COLOR: '1' }, 'err:no\n'],
    [false, { TERM: 'xterm' }, 'err:no\n'],
    [false, { FORCE_COLOR: '1' }, 'err:\x1b[31mno\x1b[0m\n'],
  ] as const) {
    const { written, output } = screen(false, tty, environment);
    output.warn('no');
    assert.deepEqual(written, [expected]);
  }
});

test('the lines of a comparison have colors only on a terminal without NO_COLOR', () => {
  for (const [tty, environment, expected] of [
    [true, { TERM: 'xterm' }, ['out:\x1b[31ma[2J\x1b[0m\n', 'out:\x1b[32mb\x1b[0m\n']],
    [true, { TERM: 'xterm', NO_COLOR: '1' }, ['out:a[2J\n', 'out:b\n']],
    [false, { TERM: 'xterm' }, ['out:a\x1b[2J\n', 'out:b\n']],
  ] as const) {
    const { written, output } = screen(tty, true, environment);
    output.compared('a\x1b[2J', 'first');
    output.compared('b', 'second');
    assert.deepEqual(written, expected);
  }
});

test('colors follow FORCE_COLOR, NO_COLOR and TERM as in Node', () => {
  const sink = (isTTY: boolean) => ({ isTTY, write: () => {} });
  const cases: [boolean, Record<string, string>, boolean][] = [
    [true, { TERM: 'xterm' }, true],
    [true, { TERM: 'dumb' }, false],
    [true, { TERM: 'xterm', NODE_DISABLE_COLORS: '1' }, false],
    [true, { TERM: 'xterm', FORCE_COLOR: '0' }, false],
    [false, { FORCE_COLOR: '' }, true],
    [false, { FORCE_COLOR: '3' }, true],
    [false, { FORCE_COLOR: '0' }, false],
    [false, { COLORTERM: 'truecolor' }, false],
  ];
  for (const [isTTY, environment, expected] of cases)
    assert.equal(hasColors(sink(isTTY), environment), expected, JSON.stringify([isTTY, environment]));
});

test('a screen of few rows still shows its last lines', () => {
  const written: string[] = [];
  const out = { isTTY: true, rows: 5, write: (text: string) => written.push(text) };
  new Output(out, out, {}).screen(['a', 'b', 'c', 'd'], ['', 'q quits']);
  assert.deepEqual(written.slice(1), ['a\n', 'b\n', '\n', 'q quits\n']);
});
