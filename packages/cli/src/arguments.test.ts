import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { URL_DEFAULT } from '@hopline/local-cluster';
import { parseArguments } from './arguments.ts';
import { COMMANDS, type Command, isCommand, optionsOf } from './commands.ts';
import { EXIT } from './exit-code.ts';
import { helpText } from './help.ts';
import { UsageError } from './usage-error.ts';

const NOTHING = {
  agent: undefined,
  context: undefined,
  task: undefined,
  cursor: undefined,
  name: undefined,
  packages: undefined,
  export: undefined,
  state: undefined,
  since: undefined,
  limit: 20,
  continue: false,
  watch: false,
  nats: false,
  chunks: false,
  html: undefined,
  follow: false,
  lines: 100,
  out: undefined,
  answer: [],
  json: false,
  url: URL_DEFAULT,
  subjects: [],
  output: undefined,
  inputs: false,
  facts: false,
  redact: false,
  all: false,
  sample: undefined,
  eventCosts: [],
  holdMaxes: [],
  profile: undefined,
  yes: false,
  text: undefined,
  longer: undefined,
  fromTurn: 1,
  file: undefined,
  compare: false,
  pace: 1,
  at: undefined,
  from: undefined,
  to: undefined,
  sameIds: false,
  endOpen: false,
  tenant: undefined,
  ownerSubject: undefined,
  port: 8_000,
  grpcPort: 0,
  host: '127.0.0.1',
  match: 'text',
  fault: undefined,
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

test('a command that asks no server refuses --url, and names no such option', () => {
  for (const line of [
    ['status', '--url', 'http://b/'],
    ['logs', '--url=http://b/'],
    ['verify', '--all', '--url', 'http://b/'],
  ])
    assert.throws(() => parseArguments(line, undefined), {
      name: 'UsageError',
      message: `${line[0]} asks no server, so it takes no --url; see hopline ${line[0]} --help`,
    });
  assert.doesNotMatch(helpText('status'), /--url/);
  assert.match(helpText('list'), /--url/);
  assert.throws(() => parseArguments(['trace', 't', '--nats', '--url', 'http://b/'], undefined), {
    message: '--nats and --url exclude each other: NATS_URL names the NATS server; see hopline trace --help',
  });
  assert.ok('command' in parseArguments(['status'], 'http://b/'), 'HOPLINE_URL is for the commands that ask a server');
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
    ['list', '--limit', '1.5'],
    ['rerun', 't', '--from-turn', '1.5'],
    ['fork', 't', '--at', '1.1'],
    ['list', '--limit', '10001'],
    ['list', '--state', 'done'],
    ...['yesterday', '5', '90', '2h ago 3', '2026-13-01', '2026-02-31x'].map(since => ['list', '--since', since]),
    ['ask', 'x', '--continue', '--context', 'c'],
    ['ask', 'x', '--continue', '--task', 't'],
    ['completion', 'tcsh'],
    ['get', 't', '--cursor', '1.1'],
    ['follow', 't', '--cursor', '1.1 '],
    ['follow', 't', '--cursor', 'ü'],
    ['follow', 't', '--cursor', ''],
    ['ask', '--agent'],
  ];
  for (const line of lines)
    assert.throws(
      () => parseArguments(line, undefined),
      thrown => thrown instanceof UsageError && /--help/.test(thrown.message),
    );
  for (const url of ['nowhere', 'ftp://x/', 'file:///x'])
    assert.throws(() => parseArguments(['card', '--url', url], undefined), UsageError);
  assert.throws(() => parseArguments(['card'], 'http://me:secret@h/'), {
    name: 'UsageError',
    message: /^(?!.*secret).*HOPLINE_TOKEN/,
  });
});

test('the help lists every command, option and exit code, and every option parses', () => {
  const values: Record<string, string> = {
    ...{ state: 'failed', limit: '3', lines: '3', since: '2h', url: 'http://h/' },
    ...{ sample: '3', 'event-cost': '40', 'hold-max': '100', 'from-turn': '2', longer: '2s' },
    ...{ pace: '2x', from: '1.1', to: '2.2', at: '1.1', port: '0', 'grpc-port': '65535', match: 'any' },
  };
  for (const [command, { subjectIs }] of Object.entries<Command>(COMMANDS)) {
    assert.ok(isCommand(command));
    assert.deepEqual(parseArguments([command, '--help'], undefined), { help: command });
    assert.match(helpText(''), new RegExp(`^  ${command} `, 'm'));
    const subject = Array.isArray(subjectIs?.values)
      ? [subjectIs.values[0]!]
      : subjectIs === undefined
        ? []
        : Array<string>(subjectIs.words ?? 1).fill('x');
    for (const [option, { value }] of Object.entries(optionsOf(command))) {
      assert.match(helpText(command), new RegExp(`--${option} `));
      if (option === 'help') continue;
      const given = value === undefined ? [`--${option}`] : [`--${option}`, values[option] ?? 'v'];
      assert.doesNotThrow(() => parseArguments([command, ...subject, ...given], undefined));
    }
  }
  for (const line of [[], ['--help'], ['-h'], ['help']]) assert.deepEqual(parseArguments(line, undefined), { help: '' });
  assert.deepEqual(parseArguments(['help', 'ask'], undefined), { help: 'ask' });
  assert.throws(() => parseArguments(['help', 'what'], undefined), /unknown command what/);
  for (const line of [['--version'], ['-v'], ['version']]) assert.deepEqual(parseArguments(line, undefined), { version: true });
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  for (const code of Object.values(EXIT)) {
    assert.match(readme, new RegExp(`^\\| ${code} `, 'm'));
    assert.match(helpText('ask'), new RegExp(`\\b${code}\\b`));
  }
});

test('help fits a terminal of 40 columns, and has no line of more than 100 elsewhere', () => {
  for (const command of ['' as const, ...Object.keys(COMMANDS).filter(isCommand)]) {
    for (const columns of [40, 60, 100]) {
      // A word that is longer than a line stays whole.
      const long = helpText(command, columns)
        .split('\n')
        .filter(line => line.length > columns && /\S\s+\S/.test(line.trim()));
      assert.deepEqual(long, [], `${command} at ${columns} columns`);
    }
    for (const line of helpText(command).split('\n')) assert.ok(line.length <= 100, line);
  }
});

test('--since is a duration before now or a date', () => {
  const sinceOf = (text: string) => {
    const read = parseArguments(['list', '--since', text], undefined, Date.UTC(2026, 0, 8));
    return 'since' in read ? read.since?.toISOString() : undefined;
  };
  assert.equal(sinceOf('90s'), '2026-01-07T23:58:30.000Z');
  assert.equal(sinceOf('15m'), '2026-01-07T23:45:00.000Z');
  assert.equal(sinceOf('2h'), '2026-01-07T22:00:00.000Z');
  assert.equal(sinceOf('7d'), '2026-01-01T00:00:00.000Z');
  assert.equal(sinceOf('2026-01-02T03:04:05Z'), '2026-01-02T03:04:05.000Z');
  // A day, and a time without a zone, are those of this machine, as the times that `list` prints.
  assert.equal(sinceOf('2026-01-02'), new Date(2026, 0, 2).toISOString());
  assert.equal(sinceOf('2026-01-02 03:04'), new Date(2026, 0, 2, 3, 4).toISOString());
});

test('every command of the guide to replay parses', () => {
  const guide = readFileSync(new URL('../../../docs/guides/replay.md', import.meta.url), 'utf8');
  const lines = [...guide.matchAll(/^npm run -s hopline -- (.*)$/gm)].map(([, line]) => line!);
  assert.ok(lines.length > 10);
  for (const line of lines) {
    const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word!);
    assert.doesNotThrow(() => parseArguments(words, undefined), line);
  }
});

test('a pace is a factor within bounds, a cursor has two numbers, a port is one', () => {
  const parsed = (...args: string[]) => parseArguments(['replay', 'f', ...args], undefined) as { pace: number };
  assert.deepEqual(
    ['recorded', 'max', '10x', '0.5x', '0.01x', '10000x'].map(pace => parsed('--pace', pace).pace),
    [1, Number.POSITIVE_INFINITY, 10, 0.5, 0.01, 10_000],
  );
  for (const pace of ['fast', '10', '0x', '0.001x', '10001x', '-1x']) assert.throws(() => parsed('--pace', pace), UsageError);
  for (const cursor of ['1', '1.', 'a.b', '-1.2']) assert.throws(() => parsed('--from', cursor), UsageError);
  for (const port of ['-1', '65536', 'http', '1e3'])
    assert.throws(() => parseArguments(['serve', 'f', '--port', port], undefined), UsageError);
});

test('several tasks are exported, several files served, one file imported', () => {
  const subjectsOf = (...argv: string[]) => (parseArguments(argv, undefined) as { subjects: readonly string[] }).subjects;
  assert.deepEqual(subjectsOf('export', 'a', 'b', '--redact', 'c'), ['a', 'b', 'c']);
  assert.deepEqual(subjectsOf('serve', 'a', 'b'), ['a', 'b']);
  assert.throws(() => parseArguments(['import', 'a', 'b'], undefined), UsageError);
  for (const command of ['export', 'serve', 'import', 'replay'])
    assert.throws(() => parseArguments([command], undefined), /requires one task/);
});
