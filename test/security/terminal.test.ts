import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Output, type Sink } from '@hopline/terminal';
import { Screen } from '../../infra/local/launcher/screen.ts';
import { showLogRecord } from '../../packages/telemetry/src/log-line.ts';

/** Sequences with which text controls a terminal, or appears in another order. */
const SEQUENCES: Record<string, string> = {
  'clear the screen': '\x1b[2J\x1b[H',
  'move the cursor up and overwrite': '\x1b[1A\x1b[2K',
  'colors that hide text': '\x1b[8m',
  'set the title (OSC 0)': '\x1b]0;x\x07',
  'write the clipboard (OSC 52)': '\x1b]52;c;eA==\x07',
  'a hyperlink (OSC 8)': '\x1b]8;;https://evil.example\x1b\\',
  'report back into the input (DSR)': '\x1b[6n',
  'report the title back': '\x1b[21t',
  'device control (DCS)': '\x1bP$qm\x1b\\',
  'reset the terminal': '\x1bc',
  'CSI in one byte (C1)': '\x9b2J',
  'OSC in one byte (C1)': '\x9d0;x\x9c',
  'next line (C1)': '\x85',
  'the alternate character set': '\x0e',
  'backspaces over a line': 'safe\b\b\b\bevil',
  'carriage return over a line': 'safe\revil',
  bell: '\x07',
  NUL: '\x00',
  DEL: '\x7f',
  'vertical tab and form feed': '\x0b\x0c',
  'right-to-left override': '\u202eexe.txt',
  'left-to-right override': '\u202dx',
  'embeddings and their end': '\u202a\u202b\u202c',
  isolates: '\u2066\u2067\u2068\u2069',
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that must be absent
const UNSAFE = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/;

function sink(written: string[]): Sink {
  return { isTTY: true, write: text => written.push(text) };
}

for (const [name, sequence] of Object.entries(SEQUENCES)) {
  test(`the command writes no sequence to a terminal: ${name}`, () => {
    const written: string[] = [];
    const output = new Output(sink(written), sink(written), { NO_COLOR: '1', TERM: 'xterm' });
    for (const text of [sequence, ...sequence]) output.answer(text);
    for (const method of ['line', 'note', 'artifact', 'warn'] as const) output[method](`a${sequence}b`);
    output.end();
    assert.doesNotMatch(written.join(''), UNSAFE);
    assert.match(written.join(''), /a.*b/s);
  });

  test(`a log line for a terminal has no sequence: ${name}`, () => {
    const err = { message: sequence, stack: `Error: ${sequence}\n    at ${sequence}` };
    const line = showLogRecord({ level: 'error', msg: `a${sequence}b`, agent: sequence, [sequence]: [sequence], err });
    assert.doesNotMatch(line, UNSAFE);
    assert.match(line, /^error a.*b/);
  });

  test(`the launcher writes no sequence to a terminal: ${name}`, () => {
    const written: string[] = [];
    const screen = new Screen(sink(written), { NO_COLOR: '1', TERM: 'xterm' });
    for (const text of [sequence, ...sequence]) screen.answer(text);
    for (const method of ['line', 'heading', 'note', 'warn'] as const) screen[method](`a${sequence}b`);
    assert.doesNotMatch(written.join(''), UNSAFE);
    assert.match(written.join(''), /a.*b/s);
  });
}

test('text of every script, tabs, line feeds and emoji are unchanged', () => {
  const written: string[] = [];
  const text = 'naïve\tשלום مرحبا\n日本語 👩‍👩‍👧 \u200f\u200e';
  new Output(sink(written), sink(written), { NO_COLOR: '1' }).answer(text);
  assert.equal(written.join(''), text);
});
