import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parseArguments, URL_DEFAULT } from './arguments.ts';
import { EXIT } from './exit-code.ts';
import { type CommandName, HELP } from './help.ts';
import { UsageError } from './usage-error.ts';

const NOTHING = {
  agent: undefined,
  context: undefined,
  task: undefined,
  cursor: undefined,
  name: undefined,
  export: undefined,
  state: undefined,
  limit: 20,
  json: false,
  url: URL_DEFAULT,
};

test('each command accepts its subject and options in any order', () => {
  assert.deepEqual(parseArguments(['ask', '--agent', 'a', 'hi', '--context=c', '--task', 't', '--json'], undefined), {
    ...NOTHING,
    ...{ command: 'ask', subject: 'hi', agent: 'a', context: 'c', task: 't', json: true },
  });
  assert.deepEqual(parseArguments(['ask', '-'], ''), { ...NOTHING, command: 'ask', subject: '-' });
  assert.deepEqual(parseArguments(['ask', '--', '--json'], ''), { ...NOTHING, command: 'ask', subject: '--json' });
  assert.deepEqual(parseArguments(['follow', 't', '--cursor', '3.7'], ''), {
    ...NOTHING,
    ...{ command: 'follow', subject: 't', cursor: '3.7' },
  });
  assert.deepEqual(parseArguments(['agent', './a.ts', '--name', 'n', '--export', 'e'], ''), {
    ...NOTHING,
    ...{ command: 'agent', subject: './a.ts', name: 'n', export: 'e' },
  });
  assert.deepEqual(parseArguments(['card'], ''), { ...NOTHING, command: 'card', subject: undefined });
  assert.deepEqual(parseArguments(['list', '--state', 'input-required', '--limit', '10000', '--context', 'c'], ''), {
    ...NOTHING,
    ...{ command: 'list', subject: undefined, state: 'TASK_STATE_INPUT_REQUIRED', limit: 10_000, context: 'c' },
  });
});

test('--url overrides HOPLINE_URL', () => {
  const urlOf = (argv: string[], environment?: string) => {
    const read = parseArguments(argv, environment);
    return 'url' in read ? read.url : '';
  };
  assert.equal(urlOf(['card', '--url', 'https://a/'], 'http://b/'), 'https://a/');
  assert.equal(urlOf(['card'], 'http://b/'), 'http://b/');
});

test('an invalid command line is a usage error that refers to --help', () => {
  const lines = [
    ['what'],
    ['toString'],
    ['ask', 'two', 'texts'],
    ['get'],
    ['agent'],
    ['agent', 'a.ts', 'b.ts'],
    ['cancel', ''],
    ['follow', 'a', 'b'],
    ['card', 'x'],
    ['list', 'x'],
    ['list', '--limit', '0'],
    ['list', '--limit', '10001'],
    ['list', '--state', 'done'],
    ['get', 't', '--cursor', '1.1'],
    ['ask', '--agent'],
  ];
  for (const line of lines)
    assert.throws(
      () => parseArguments(line, undefined),
      thrown => thrown instanceof UsageError && /--help/.test(thrown.message),
    );
  for (const url of ['nowhere', 'ftp://x/', 'file:///x'])
    assert.throws(() => parseArguments(['card', '--url', url], undefined), UsageError);
});

test('the help lists every option of a command and every exit code', () => {
  const options: Record<CommandName, string[]> = {
    ask: ['agent', 'context', 'task'],
    follow: ['cursor'],
    list: ['context', 'state', 'limit'],
    get: [],
    cancel: [],
    trace: [],
    card: [],
    agent: ['name', 'export'],
  };
  for (const [command, own] of Object.entries(options)) {
    assert.deepEqual(parseArguments([command, '--help'], undefined), { help: command });
    const text = HELP[command as CommandName];
    const named = [...text.matchAll(/^ {2}--([a-z]+)/gm)].map(match => match[1]);
    assert.deepEqual(named, [...own, 'url', 'json', 'help']);
    const values: Record<string, string> = { state: 'failed', limit: '3' };
    const subject = command === 'list' ? [] : ['x'];
    for (const option of own)
      assert.doesNotThrow(() => parseArguments([command, ...subject, `--${option}`, values[option] ?? 'v'], undefined));
  }
  for (const line of [[], ['--help'], ['-h'], ['help']]) assert.deepEqual(parseArguments(line, undefined), { help: '' });
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  for (const code of Object.values(EXIT)) {
    assert.match(HELP.ask, new RegExp(`\\b${code} `));
    assert.match(readme, new RegExp(`^\\| ${code} +\\|`, 'm'));
  }
});
