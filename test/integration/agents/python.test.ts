import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createA2AAgent } from '@hopline/agent-a2a';
import { type PythonSdk, type PythonStep, pythonWith, startPythonAgent } from '../../support/agents/python-agent.ts';
import { eventsOf, lastOf } from '../../support/agents/turn.ts';
import { collect, type Frame, foldOf, frames, messageParams, rpc, textOf } from '../../support/cluster/a2a-stream.ts';
import { Cluster } from '../../support/cluster/cluster.ts';

const WORDS = 'Python replies: haha\n\n**bold** ✅ done 👩‍👩‍👧';
const taskIdOf = (list: readonly Frame[]) => (list[0]!.result as { id: string }).id;

for (const sdk of ['1', '0.3'] as PythonSdk[]) {
  const python = pythonWith(sdk);
  const variable = `A2A_PYTHON_${sdk.replace('.', '_')}`;
  const skip = python === undefined && `no Python with a2a-sdk ${sdk}.x: install it with uvicorn, or name one in ${variable}`;

  test(`an agent written with the Python SDK ${sdk}.x, behind Hopline: text, question, cancel`, {
    skip,
    timeout: 90_000,
  }, async t => {
    const agent = await startPythonAgent(python!, sdk);
    t.after(agent.stop);
    await using cluster = await Cluster.shared({
      agents: [{ name: `python-${sdk.replace('.', '-')}`, adapter: 'a2a', url: agent.url }],
    });

    const answered = await collect(cluster.url, { text: 'hi' });
    assert.equal(foldOf(answered).task?.status.state, 'TASK_STATE_COMPLETED');
    assert.equal(textOf(answered, 'streaming_result'), `${WORDS} hi`);
    assert.equal(textOf(answered, 'partial_result'), `${WORDS} hi`);

    const question = await collect(cluster.url, { text: 'ask' });
    const fold = foldOf(question);
    assert.equal(fold.task?.status.state, 'TASK_STATE_INPUT_REQUIRED');
    assert.equal(fold.task?.status.message?.parts[0]?.text, 'Which one?');
    const again = await collect(cluster.url, { params: messageParams('this one', { taskId: taskIdOf(question) }) });
    assert.equal(foldOf(again).task?.status.state, 'TASK_STATE_COMPLETED');
    assert.equal(textOf(again, 'streaming_result'), `${WORDS} this one`);

    let canceled: unknown;
    const list: Frame[] = [];
    for await (const frame of frames(cluster.url, { text: 'slow' })) {
      list.push(frame);
      if (canceled !== undefined || textOf(list, 'streaming_result') === '') continue;
      const response = await rpc(cluster.url, { method: 'tasks/cancel', params: { id: taskIdOf(list) } });
      canceled = ((await response.json()) as { result: { status: { state: string } } }).result.status.state;
    }
    assert.equal(canceled, 'canceled');
    assert.equal(foldOf(list).task?.status.state, 'TASK_STATE_CANCELED');
  });

  test(`an agent of the Python SDK ${sdk}.x that raises, or falls silent, fails although its server pings`, {
    skip,
    timeout: 90_000,
  }, async t => {
    const server = await startPythonAgent(python!, sdk, 'scripted');
    t.after(server.stop);
    const agent = createA2AAgent({ url: server.url, firstEventMsMax: 2_000, silenceMsMax: 2_000 });
    t.after(() => agent.close());
    const played = (...steps: PythonStep[]) => eventsOf(agent, JSON.stringify(steps));
    const raised = lastOf(await played(['status', 'working'], ['raise']), 'failed');
    const reason = sdk === '1' ? 'the agent answered with error -32603' : 'the agent sent nothing for 2 s';
    assert.deepEqual([raised.reason, raised.message], [reason, undefined]);
    const words = ['a', 'b', 'c', 'd', 'e'];
    const tokens = words.map((text, index): PythonStep => ['artifact', 'answer', text, index > 0, false]);
    const silent = await played(['status', 'working'], ...tokens, ['pause', 3_600]);
    assert.equal(lastOf(silent, 'failed').reason, 'the agent sent nothing for 2 s');
    assert.equal(silent.filter(({ type }) => type === 'artifact').length, words.length);
  });
}
