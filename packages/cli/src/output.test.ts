import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Output, type Sink } from './output.ts';

function screen(outTTY: boolean, errTTY: boolean, noColor = false) {
  const written: string[] = [];
  const sink = (name: string, isTTY: boolean): Sink => ({ isTTY, write: text => written.push(`${name}:${text}`) });
  return { written, output: new Output(sink('out', outTTY), sink('err', errTTY), noColor) };
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

test('warnings are always written; colors only on a terminal, and not with NO_COLOR', () => {
  for (const [tty, noColor, expected] of [
    [true, false, 'err:\x1b[31mno\x1b[0m\n'],
    [true, true, 'err:no\n'],
    [false, false, 'err:no\n'],
  ] as const) {
    const { written, output } = screen(false, tty, noColor);
    output.warn('no');
    assert.deepEqual(written, [expected]);
  }
});
