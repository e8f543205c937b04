import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { collect, type Frame, foldOf, messageParams } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

/** A question of an MCP server as a client sees it, with a death between the question and its answer. */

const TIMEOUT = { timeout: 180_000 };
const ASKING = fileURLToPath(new URL('../support/agents/asking-mcp-server.ts', import.meta.url));
const ASKING_2026 = fileURLToPath(new URL('../support/agents/asking-mcp-server-2026.ts', import.meta.url));

let cluster: Cluster;

before(async () => {
  cluster = await Cluster.shared({
    agents: [
      { name: 'booker', adapter: 'mcp', command: process.execPath, args: [ASKING] },
      { name: 'booker2026', adapter: 'mcp', command: process.execPath, args: [ASKING_2026] },
    ],
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
});

/** The state, the question and the answer of one turn. */
function seen(frames: readonly Frame[]) {
  const fold = foldOf(frames);
  const { id, contextId, status } = fold.task!;
  const question = status.message?.parts[0]?.text?.split('\n')[0];
  return {
    taskId: id,
    contextId,
    state: status.state.replace('TASK_STATE_', ''),
    question,
    answer: fold.textOf('streaming_result'),
  };
}

for (const [agent, second, answer] of [
  ['booker', 'How many nights in Rome?', 'booked Rome for 3'],
  ['booker2026', 'How many nights?', 'booked 3 nights in Rome'],
] as const)
  test(`${agent}: the answer to a question of an MCP server reaches the next process of the sub-agent`, TIMEOUT, async () => {
    const contextId = randomUUID();
    const turn = async (text: string, more: Record<string, unknown> = {}) =>
      seen(await collect(cluster.url, { params: messageParams(text, { contextId, metadata: { agent }, ...more }) }));
    const first = await turn('book {}');
    assert.deepEqual([first.state, first.question], ['INPUT_REQUIRED', 'Which city?']);
    const process = cluster.agents.find(({ spec }) => spec.env.HOPLINE_AGENT?.includes(`"${agent}"`))!;
    await process.kill();
    await process.start();
    const { taskId } = first;
    const next = await turn('Rome', { taskId });
    assert.deepEqual([next.taskId, next.state, next.question], [taskId, 'INPUT_REQUIRED', second]);
    const refused = await turn('many', { taskId });
    assert.equal(refused.state, 'INPUT_REQUIRED');
    assert.match(refused.question ?? '', /^The answer does not fit/);
    const last = await turn('3', { taskId });
    assert.deepEqual([last.taskId, last.state, last.answer], [taskId, 'COMPLETED', answer]);
  });
