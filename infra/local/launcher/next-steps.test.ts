import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { callerCredentials, nextSteps, questionFor } from './next-steps.ts';

const processes = [{ service: 'relay', instance: 'relay-1', pid: 4711, url: '', restarts: 0 }];

/** The arguments that a shell passes to curl. */
function shellArguments(line: string, env: Record<string, string> = {}): string[] {
  const script = line.trim().replace(/^curl/, "printf '%s\\0'");
  const output = execFileSync('sh', ['-c', script], { encoding: 'utf8', env: { ...process.env, ...env } });
  return output.split('\0').slice(0, -1);
}

test('the commands contain the values of the cluster and survive shell quoting', () => {
  const question = `list_directory {"path":"it's"}`;
  const command = 'npm run -s hopline --';
  const lines = nextSteps({
    url: 'http://127.0.0.1:8000/',
    command,
    question,
    processes,
    resume: { taskId: 't-1', cursor: 't-1.42' },
  });
  const [askLine = '', resumeLine = ''] = lines.filter(line => line.includes('curl -N'));
  const request = shellArguments(askLine);
  assert.ok(request.includes('http://127.0.0.1:8000/'));
  assert.equal(JSON.parse(request.at(-1) ?? '').params.message.parts[0].text, question);
  const resubscribe = shellArguments(resumeLine);
  assert.ok(resubscribe.includes('Last-Event-ID: t-1.42'));
  assert.deepEqual(JSON.parse(resubscribe.at(-1) ?? ''), {
    jsonrpc: '2.0',
    id: 2,
    method: 'tasks/resubscribe',
    params: { id: 't-1' },
  });
  assert.ok(lines.includes('   kill -9 4711'));
});

test('if callers need credentials, each curl sends them from the variable that the command reads', () => {
  const step = { url: 'http://127.0.0.1:8000/', command: 'hopline', question: 'why?', processes, resume: null };
  const headersOf = (settings: Record<string, string>) => {
    const lines = nextSteps({ ...step, credentials: callerCredentials(settings) });
    const { variable = 'NONE' } = callerCredentials(settings) ?? {};
    assert.equal(lines.includes(`This cluster requires credentials: export ${variable}=… first.`), variable !== 'NONE');
    const requests = lines.filter(line => line.includes('curl -N'));
    assert.equal(requests.length, 2);
    const values = { HOPLINE_API_KEY: 'key of ann', HOPLINE_TOKEN: 'token-of-ann' };
    return requests.map(line => shellArguments(line, values).find(one => one.endsWith('of-ann') || one.endsWith('of ann')));
  };
  const keys = { HOPLINE_AUTH_API_KEYS_FILE: 'keys.json' };
  assert.deepEqual(headersOf(keys), Array(2).fill('x-api-key: key of ann'));
  assert.deepEqual(headersOf({ ...keys, HOPLINE_AUTH_API_KEY_HEADER: 'x-key' }), Array(2).fill('x-key: key of ann'));
  assert.deepEqual(headersOf({ HOPLINE_AUTH_ISSUER: 'https://i/' }), Array(2).fill('authorization: Bearer token-of-ann'));
  assert.deepEqual(headersOf({}), [undefined, undefined]);
});

test('the console link opens the task of the demo', () => {
  const console = { service: 'console', instance: 'console-1', pid: 1, url: 'http://127.0.0.1:8090', restarts: 0 };
  const step = { url: 'http://127.0.0.1:8000/', command: 'hopline', question: 'why?', processes: [console] };
  assert.ok(nextSteps({ ...step, resume: { taskId: 't-1', cursor: '1.1' } }).includes('   http://127.0.0.1:8090/tasks/t-1'));
  assert.ok(nextSteps({ ...step, resume: null }).includes('   http://127.0.0.1:8090/'));
});

test('the printed command works in this folder, and includes the address of a cluster on another port', () => {
  const command = 'npm run -s hopline --';
  const step = (url: string) => nextSteps({ url, command, question: 'hello', processes, resume: null }).map(line => line.trim());
  assert.ok(step('http://127.0.0.1:8000/').includes('npm run -s hopline -- ask hello'));
  assert.ok(step('http://127.0.0.1:8001/').includes('npm run -s hopline -- ask --url http://127.0.0.1:8001/ hello'));
  for (const line of ['npm run -s hopline -- status', 'npm run -s hopline -- logs -f'])
    assert.ok(step('http://127.0.0.1:8000/').includes(line));
});

test('commands that read a home name this cluster’s home, unless they find it by themselves', () => {
  const step = { url: 'http://127.0.0.1:8001/', command: 'hopline', question: 'hello', processes, resume: null };
  const lines = nextSteps({ ...step, home: '/tmp/my home' });
  for (const command of ['status', 'logs -f']) assert.ok(lines.includes(`   HOPLINE_HOME='/tmp/my home' hopline ${command}`));
});

test('with several agents the question names one of them, in the option and in the metadata', () => {
  const step = { url: 'http://127.0.0.1:8000/', command: 'hopline', question: 'hello', processes, resume: null };
  const lines = nextSteps({ ...step, agent: 'guide' });
  assert.ok(lines.includes('   hopline ask --agent guide hello'));
  const request = shellArguments(lines.find(line => line.includes('curl -N')) ?? '').at(-1) ?? '';
  assert.deepEqual(JSON.parse(request).params.message.metadata, { agent: 'guide' });
});

test('the question is an example of the agent, unless the example could change the terminal', () => {
  const skill = (...examples: string[]) => ({ examples });
  assert.equal(questionFor([{}, skill(), skill('\u001b[2J', 'two\nlines', 'Paris')]), 'Paris');
  assert.equal(questionFor([{}]), 'Hello, what can you do?');
});
