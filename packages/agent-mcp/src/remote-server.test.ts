import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { COMMAND_BYTES_MAX, CONNECTED_SERVERS_MAX, listenForServers, startRemoteServer } from './remote-server.ts';

async function listenerOf(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-servers-'));
  const path = join(folder, 'socket');
  const faults: string[] = [];
  const listener = await listenForServers(path, {
    environment: { PATH: '/usr/bin:/bin' },
    onFault: sentence => faults.push(sentence),
  });
  t.after(async () => {
    await listener.close();
    await rm(folder, { recursive: true });
  });
  return { path, faults, listener };
}

/** A server that prints its process id and then each line that it reads. `deaf`: it does not end with its input or on SIGTERM. */
function echo(deaf = false) {
  const stay = "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000);";
  const program = `${deaf ? stay : ''}console.log(process.pid); process.stdin.pipe(process.stdout);`;
  return { command: process.execPath, args: ['-e', program] };
}

async function lines(output: AsyncIterable<Buffer>, count: number): Promise<string[]> {
  let text = '';
  for await (const chunk of output) {
    text += chunk.toString();
    if (text.split('\n').length > count) break;
  }
  return text.split('\n').slice(0, count);
}

async function ended(pid: number): Promise<void> {
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await sleep(10);
  }
}

test('a server runs on the other side of the socket, which only its user and group may use', async t => {
  const { path } = await listenerOf(t);
  assert.equal((await stat(path)).mode & 0o777, 0o660);
  const server = await startRemoteServer(path, echo());
  server.input.write('one\ntwo\n');
  const [pid, ...read] = await lines(server.output.iterator({ destroyOnReturn: false }), 3);
  assert.deepEqual(read, ['one', 'two']);
  assert.notEqual(Number(pid), process.pid);
  await server.stop();
  await ended(Number(pid));
});

test('a server whose sub-agent is gone is stopped, even if it ignores the end of its input and SIGTERM', async t => {
  const { path } = await listenerOf(t);
  const server = await startRemoteServer(path, echo(true));
  const [pid] = await lines(server.output.iterator({ destroyOnReturn: false }), 1);
  // The kernel does this to the connection of a sub-agent that was killed.
  server.input.destroy();
  await server.ended;
  await ended(Number(pid));
});

test('a server that ends closes its connection', async t => {
  const { path } = await listenerOf(t);
  const server = await startRemoteServer(path, { command: process.execPath, args: ['-e', ''] });
  server.output.resume();
  await server.ended;
});

test('a command that cannot run is an error of one sentence, and closes its connection', async t => {
  const { path, faults } = await listenerOf(t);
  const sent = async (line: string) => {
    const connection = connect(path);
    connection.on('error', () => {});
    connection.end(line);
    connection.resume();
    await once(connection, 'close').catch(() => {});
    return faults.pop();
  };
  assert.equal(await sent('{'), 'an MCP server could not start: its command is not complete');
  assert.equal(await sent('{\n'), 'an MCP server could not start: its command is not JSON');
  assert.equal(await sent('null\n'), 'an MCP server could not start: its command has no program');
  assert.equal(await sent('{"command":"/no/program"}\n'), 'an MCP server could not start: spawn /no/program ENOENT');
  const padded = (bytes: number) => `{"command":"/no/program"}${' '.repeat(bytes - 25)}\n`;
  assert.equal(await sent(padded(COMMAND_BYTES_MAX)), 'an MCP server could not start: spawn /no/program ENOENT');
  assert.equal(
    await sent(padded(COMMAND_BYTES_MAX + 1)),
    `an MCP server could not start: its command has more than ${COMMAND_BYTES_MAX} bytes`,
  );
});

test('a container runs a bounded number of servers at once', async t => {
  const { path } = await listenerOf(t);
  const open = await Promise.all(
    Array.from({ length: CONNECTED_SERVERS_MAX }, async () => {
      const connection = connect(path);
      await once(connection, 'connect');
      return connection;
    }),
  );
  const server = await startRemoteServer(path, { command: 'cat' });
  await server.ended;
  for (const connection of open) connection.destroy();
});

test('a sub-agent gets an error of one sentence if nothing listens at the socket', { timeout: 120_000 }, async () => {
  await assert.rejects(startRemoteServer('/nowhere/socket', echo()), { message: 'nothing listens at /nowhere/socket' });
});
