import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { URL_DEFAULT } from '@hopline/local-cluster';
import { COMMANDS } from '../commands.ts';
import { EXIT } from './exit-code.ts';
import { commandHelp, overviewHelp } from './help.ts';
import { timeSince } from './options.ts';
import { optionsOf, parseArguments } from './parse-arguments.ts';
import { UsageError } from './usage-error.ts';

const parse = (argv: string[], defaultUrl?: string) => parseArguments(argv, COMMANDS, defaultUrl);

/** Parses a command line. Returns the command's name, its subject, and the options that have a value. */
function parsed(...argv: string[]) {
  const line = parse(argv);
  assert.ok('command' in line);
  const options = Object.entries(line.given.options).filter(([, value]) => value !== undefined && value !== false);
  return { name: line.command.name, subject: line.given.subject, options: Object.fromEntries(options), json: line.json };
}

test('each command accepts its subject and options in any order', () => {
  assert.deepEqual(parsed('ask', '--agent', 'a', 'hi', '--context=c', '--task', 't', '--json'), {
    name: 'ask',
    subject: 'hi',
    json: true,
    options: { agent: 'a', context: 'c', task: 't', answer: [] },
  });
  assert.equal(parsed('ask', '-').subject, '-');
  assert.equal(parsed('ask', '--', '--json').subject, '--json');
  const followed = parsed('follow', 't', '--cursor', '3.7');
  assert.deepEqual([followed.subject, followed.options.cursor], ['t', '3.7']);
  assert.deepEqual(parsed('agent', './a.ts', '--name', 'n', '--export', 'e'), {
    name: 'agent',
    subject: './a.ts',
    json: false,
    options: { name: 'n', export: 'e' },
  });
  assert.deepEqual(parsed('card'), { name: 'card', subject: undefined, options: {}, json: false });
  assert.deepEqual(parsed('tasks', '--state', 'input-required', '--limit', '10000', '--context', 'c'), {
    name: 'tasks',
    subject: undefined,
    json: false,
    options: { state: 'TASK_STATE_INPUT_REQUIRED', limit: 10_000, context: 'c' },
  });
  assert.deepEqual(parsed('import', 'f', '--same-ids').options, { sameIds: true });
  assert.deepEqual(parsed('what-if', '--event-cost', '1', '--event-cost', '2.5').options, { eventCost: [1, 2.5], holdMax: [] });
});

test('--url overrides HOPLINE_URL, which overrides the local cluster', () => {
  const urlOf = (argv: string[], environment?: string) => {
    const line = parse(argv, environment);
    return 'url' in line ? line.url : '';
  };
  assert.equal(urlOf(['card', '--url', 'https://a/'], 'http://b/'), 'https://a/');
  assert.equal(urlOf(['card'], 'http://b/'), 'http://b/');
  assert.equal(urlOf(['card'], ''), URL_DEFAULT);
});

test('a command that contacts no server refuses --url, and its help does not list the option', () => {
  for (const line of [
    ['status', '--url', 'http://b/'],
    ['logs', '--url=http://b/'],
    ['verify', '--all', '--url', 'http://b/'],
  ])
    assert.throws(() => parse(line), {
      name: 'UsageError',
      message: `${line[0]} does not contact a server, so it has no --url; see hopline ${line[0]} --help`,
    });
  const helpOf = (name: string) => commandHelp(COMMANDS.find(command => command.name === name)!);
  assert.doesNotMatch(helpOf('status'), /--url/);
  assert.match(helpOf('tasks'), /--url/);
  assert.throws(() => parse(['trace', 't', '--nats', '--url', 'http://b/']), {
    message: '--nats and --url cannot be used together: NATS_URL names the NATS server; see hopline trace --help',
  });
  assert.ok('command' in parse(['status'], 'http://b/'), 'HOPLINE_URL is for the commands that ask a server');
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
    ['tasks', 'x'],
    ['tasks', '--limit', '0'],
    ['tasks', '--limit', '1.5'],
    ['rerun', 't', '--from-turn', '1.5'],
    ['fork', 't', '--at', '1.1'],
    ['tasks', '--limit', '10001'],
    ['tasks', '--state', 'done'],
    ...['yesterday', '5', '90', '2h ago 3', '2026-13-01', '2026-02-31x'].map(since => ['tasks', '--since', since]),
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
      () => parse(line),
      thrown => thrown instanceof UsageError && /--help/.test(thrown.message),
    );
  for (const url of ['nowhere', 'ftp://x/', 'file:///x']) assert.throws(() => parse(['card', '--url', url]), UsageError);
  assert.throws(() => parse(['card'], 'http://me:secret@h/'), {
    name: 'UsageError',
    message: /^(?!.*secret).*HOPLINE_TOKEN/,
  });
});

test('the help lists every command, option and exit code, and every listed option parses', () => {
  const values: Record<string, string> = {
    state: 'failed',
    limit: '3',
    lines: '3',
    since: '2h',
    url: 'http://h/',
    sample: '3',
    'event-cost': '40',
    'hold-max': '100',
    'from-turn': '2',
    longer: '2s',
    pace: '2x',
    from: '1.1',
    to: '2.2',
    at: '1.1',
    port: '0',
    'grpc-port': '65535',
    match: 'any',
  };
  for (const command of COMMANDS) {
    const { name, subject: taken } = command;
    assert.deepEqual(parse([name, '--help']), { help: command });
    assert.match(overviewHelp(COMMANDS), new RegExp(`^  ${name} `, 'm'));
    // The help shows a subject of two words as two words.
    const words = (taken?.usage ?? '').split(' ').filter(word => word !== '');
    const subject = Array.isArray(taken?.values) ? [taken.values[0]!] : words.map(() => 'x');
    for (const [option, { value }] of optionsOf(command)) {
      assert.match(commandHelp(command), new RegExp(`--${option} `));
      if (option === 'help') continue;
      const given = value === undefined ? [`--${option}`] : [`--${option}`, values[option] ?? 'v'];
      assert.doesNotThrow(() => parse([name, ...subject, ...given]), name);
    }
  }
  for (const line of [[], ['--help'], ['-h'], ['help']]) assert.deepEqual(parse(line), { help: undefined });
  assert.deepEqual(parse(['help', 'ask']), { help: COMMANDS[0] });
  assert.throws(() => parse(['help', 'what']), /unknown command what/);
  for (const line of [['--version'], ['-v'], ['version']]) assert.deepEqual(parse(line), { version: true });
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  for (const code of Object.values(EXIT)) {
    assert.match(readme, new RegExp(`^\\| ${code} `, 'm'));
    assert.match(commandHelp(COMMANDS[0]!), new RegExp(`\\b${code}\\b`));
  }
});

test('help fits a terminal of 40 columns, and elsewhere has no line of more than 100', () => {
  const texts = [overviewHelp.bind(undefined, COMMANDS), ...COMMANDS.map(command => commandHelp.bind(undefined, command))];
  for (const textAt of texts) {
    for (const columns of [40, 60, 100]) {
      // A word that is longer than a line is not broken.
      const long = textAt(columns)
        .split('\n')
        .filter(line => line.length > columns && /\S\s+\S/.test(line.trim()));
      assert.deepEqual(long, [], `${columns} columns`);
    }
    for (const line of textAt().split('\n')) assert.ok(line.length <= 100, line);
  }
});

test('--since is a duration before now or a date', () => {
  const sinceOf = (text: string) => timeSince(text, Date.UTC(2026, 0, 8)).toISOString();
  assert.equal(sinceOf('90s'), '2026-01-07T23:58:30.000Z');
  assert.equal(sinceOf('15m'), '2026-01-07T23:45:00.000Z');
  assert.equal(sinceOf('2h'), '2026-01-07T22:00:00.000Z');
  assert.equal(sinceOf('7d'), '2026-01-01T00:00:00.000Z');
  assert.equal(sinceOf('2026-01-02T03:04:05Z'), '2026-01-02T03:04:05.000Z');
  // A day, or a time without a zone, is in this machine's time zone, like the times that `tasks` prints.
  assert.equal(sinceOf('2026-01-02'), new Date(2026, 0, 2).toISOString());
  assert.equal(sinceOf('2026-01-02 03:04'), new Date(2026, 0, 2, 3, 4).toISOString());
});

test('every command of the guide to replay parses', () => {
  const guide = readFileSync(new URL('../../../../docs/guides/replay.md', import.meta.url), 'utf8');
  const lines = [...guide.matchAll(/^npm run -s hopline -- (.*)$/gm)].map(([, line]) => line!);
  assert.ok(lines.length > 10);
  for (const line of lines) {
    const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word!);
    assert.doesNotThrow(() => parse(words), line);
  }
});

test('a pace is a factor within bounds, a cursor has two numbers, and a port is a number', () => {
  const optionsFor = (...args: string[]) => parsed('replay', 'f', ...args).options;
  assert.deepEqual(
    ['recorded', 'max', '10x', '0.5x', '0.01x', '10000x'].map(pace => optionsFor('--pace', pace).pace),
    [1, Number.POSITIVE_INFINITY, 10, 0.5, 0.01, 10_000],
  );
  for (const pace of ['fast', '10', '0x', '0.001x', '10001x', '-1x']) assert.throws(() => optionsFor('--pace', pace), UsageError);
  assert.deepEqual(optionsFor('--from', '17.42').from, { generation: 17, seq: 42 });
  for (const cursor of ['1', '1.', 'a.b', '-1.2']) assert.throws(() => optionsFor('--from', cursor), UsageError);
  for (const port of ['-1', '65536', 'http', '1e3']) assert.throws(() => parse(['serve', 'f', '--port', port]), UsageError);
});

test('the error for an unknown command names the command that it resembles, and the former name of a command still works', () => {
  const message = 'unknown command trase; did you mean trace?; see hopline --help';
  assert.throws(() => parse(['trase', 't']), { name: 'UsageError', message });
  const swapped = 'unknown command hlep; did you mean help?; see hopline --help';
  assert.throws(() => parse(['hlep']), { name: 'UsageError', message: swapped });
  assert.throws(() => parse(['nothing']), { message: 'unknown command nothing; see hopline --help' });
  assert.equal(parsed('list', '--limit', '1').name, 'tasks');
  assert.doesNotMatch(overviewHelp(COMMANDS), /^ {2}list /m);
});

test('an error names the option, the values that it accepts, and the help of the command', () => {
  const faults: [string[], string][] = [
    [['tasks', '--limit', '0'], '--limit must be a number from 1 to 10000; see hopline tasks --help'],
    [['tasks', '--longer', '5'], '--longer must be a duration: 500ms, 30s, 15m, 2h, 7d; see hopline tasks --help'],
    [['serve', 'f', '--match', 'x'], '--match must be text or any; see hopline serve --help'],
    [['get'], 'get requires one task id; see hopline get --help'],
    [['get', 'a', 'b'], 'get takes one task id; see hopline get --help'],
    [['card', 'x'], 'card takes no arguments; see hopline card --help'],
    [['get', 't', '--no'], "unknown option '--no'; see hopline get --help"],
    [['chat', '--continue', '--context', 'c'], '--continue and --context cannot be used together; see hopline chat --help'],
  ];
  for (const [line, message] of faults) assert.throws(() => parse(line), { name: 'UsageError', message });
});

test('a command line exports several tasks, serves several files, imports one file, compares two tasks', () => {
  assert.deepEqual(parsed('export', 'a', 'b', '--redact', 'c').subject, ['a', 'b', 'c']);
  assert.deepEqual(parsed('serve', 'a', 'b').subject, ['a', 'b']);
  assert.deepEqual(parsed('diff', 'a', 'b').subject, ['a', 'b']);
  for (const line of [
    ['diff', 'a'],
    ['diff', 'a', 'b', 'c'],
    ['import', 'a', 'b'],
  ])
    assert.throws(() => parse(line), UsageError);
  for (const command of ['export', 'serve', 'import', 'replay'])
    assert.throws(() => parse([command]), /requires one (or more )?task/);
});
