import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMcpAgent } from './mcp-agent.ts';

/** The reason that an agent gives when its server runs the given script. */
async function faultOf(script: string, connectMsMax: number): Promise<{ code?: string; name?: string }> {
  const agent = createMcpAgent({ command: process.execPath, args: ['-e', script], limits: { connectMsMax } });
  const fault = await agent.skills().then(
    () => assert.fail('the server has answered'),
    error => error,
  );
  await agent.close();
  return fault;
}

test('a server that never answers and one that exits at once give different reasons', { timeout: 120_000 }, async () => {
  assert.equal((await faultOf('process.stdin.resume()', 300)).code, 'ETIMEDOUT');
  assert.equal((await faultOf('process.exit(1)', 20_000)).name, 'ConnectionClosed');
});
