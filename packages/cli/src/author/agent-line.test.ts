import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LINE } from '@hopline/telemetry';
import { Output } from '@hopline/terminal';
import { showAgentLine } from './agent-line.ts';

function printed(line: string): string[] {
  const written: string[] = [];
  const sink = (name: string) => ({ write: (text: string) => written.push(`${name}:${text}`) });
  showAgentLine(line, {
    output: new Output(sink('out'), sink('err'), {}),
    commandLine: args => `hopline ${args} --url http://h/`,
  });
  return written;
}

test('lines of the process log are summarized', () => {
  const log = (more: object) => printed(JSON.stringify({ level: 'info', msg: 'turn ended', ...more }));
  assert.deepEqual(log({ msg: 'agent listening', agent: 'mine', url: 'http://a/' }), [
    'out:mine is running (http://a/); try: hopline ask --agent mine --url http://h/ TEXT\n',
  ]);
  assert.deepEqual(log({ agent: 'mine', state: 'failed', reason: 'why' }), ['out:turn ended · failed · why\n']);
  assert.deepEqual(log({}), []);
  const wide = { level: 'warn', msg: LINE.loginWide, reason: 'all agents share it' };
  assert.deepEqual(log(wide), [], 'operators change logins, authors do not');
  const err = { message: 'a.ts cannot be loaded', cause: { message: 'no', stack: 'at a.ts:1' } };
  assert.deepEqual(log({ level: 'fatal', msg: 'start', err }), ['err:start: a.ts cannot be loaded: at a.ts:1\n']);
});

test('any other line is printed unchanged and never ends the command', () => {
  const lines = ['hello', '{"rows":3}', '{"state":{"a":1}}', '[1]', 'null', '{"level":30,"msg":"mine"}', '{"msg":{}}'];
  for (const line of lines) assert.deepEqual(printed(line), [`err:${line}\n`], line);
  const odd = JSON.stringify({
    level: 'error',
    msg: 'x',
    agent: 'mine',
    state: {},
    reason: 7,
    err: { message: 'm', cause: null },
  });
  assert.deepEqual(printed(odd), ['err:x: m\n']);
});
