import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Fold, type Part } from '@hopline/a2a';
import { approvalResponse } from '@hopline/client';
import { freePort } from '@hopline/local-cluster';
import { kindOfArtifact } from '@hopline/profiles';
import type { ClientView } from '@hopline/task-view';
import { until } from '../../kit/until.ts';
import { HeldWork } from '../../support/agents/held-work.ts';
import { FRAMEWORKS, pythonWithFramework, startFrameworkAgent } from '../../support/agents/python-agent.ts';
import { collect, messageParams, textOf } from '../../support/cluster/a2a-stream.ts';
import { ClientViews } from '../../support/cluster/client-views.ts';
import { Cluster } from '../../support/cluster/cluster.ts';

const ANSWER = 'The answer: haha\r\n\r\n**bold** ✅ done 👩‍👩‍👧';
const STEP = 'Let me look it up.\n';
const FILE = { raw: Buffer.from('grüße').toString('base64'), filename: 'notes.txt', mediaType: 'text/plain' };
const TIMEOUT = 600_000;

/** Questions for each framework, with their answers. */
const QUESTIONS = {
  'google-adk': [
    { text: 'hi', answer: ANSWER },
    { text: 'steps', answer: `${STEP}${ANSWER}` },
  ],
  // Strands sends its result as a string in an artifact, which ends with a line break.
  'strands-agents': [{ text: 'hi', answer: `${ANSWER}\n` }],
  fasta2a: [{ text: 'hi', answer: ANSWER }],
} as const;

/**
 * The rest of each framework's A2A server: its message of a failure, whether it can cancel a turn, how it asks and takes data as the answer, and its answer to
 * a file. `AgentWorker` of fasta2a sets no state but completed and failed, and its `cancel_task` is empty.
 */
const ABILITIES: Record<
  (typeof FRAMEWORKS)[number]['name'],
  {
    failure: string;
    cancels: boolean;
    /** A client answers with text, or with data that names the question. */
    question?: { text: string; data: (question: Part[]) => Part };
    file: { answer: string; sent: Part[] };
  }
> = {
  'google-adk': {
    failure: 'no oven',
    cancels: true,
    // A call of a LongRunningFunctionTool. The answer is its result.
    question: {
      text: 'The agent waits for an answer.',
      data: ([, part]) => {
        const { id, name } = part!.data as { id: string; name: string };
        return { data: { id, name, response: { result: 'blue' } }, metadata: { adk_type: 'function_response' } };
      },
    },
    file: {
      answer: 'Turned notes.txt.',
      sent: [
        {
          raw: Buffer.from(Buffer.from('grüße').toReversed()).toString('base64'),
          filename: 'turned.bin',
          mediaType: 'text/plain',
        },
      ],
    },
  },
  'strands-agents': {
    failure: 'Agent execution failed',
    cancels: true,
    question: {
      text: 'Agent requires input:\n- color: Which color?',
      data: ([, part]) => {
        const { interrupts } = part!.data as { interrupts: { interruptId: string }[] };
        return { data: { interruptResponse: { interruptId: interrupts[0]!.interruptId, response: 'blue' } } };
      },
    },
    file: { answer: 'notes: grüße', sent: [] },
  },
  fasta2a: { failure: 'fasta2a-abilities: the agent failed', cancels: false, file: { answer: 'text/plain: grüße', sent: [] } },
};

/** `trimsEnd`: the answer ends without the line break of `QUESTIONS`. */
type FrameworkAgent = { name: string; url: string; trimsEnd: boolean };

for (const framework of FRAMEWORKS) {
  const { name, variable } = framework;
  const found = await pythonWithFramework(framework);
  const python = 'python' in found ? found.python : '';
  const skip = 'skip' in found && `${found.skip}; or name one in ${variable}`;
  const disposables = new AsyncDisposableStack();
  after(() => disposables.disposeAsync());
  let started: Promise<{ held: HeldWork; agents: FrameworkAgent[] }> | undefined;
  /** The agents of both tests: the import of a framework takes seconds. */
  const servers = () => (started ??= start());

  async function start() {
    const held = disposables.use(await HeldWork.start());
    // Strands streams in two ways.
    const compliant = name === 'strands-agents' ? await freePort() : undefined;
    const agent = await startFrameworkAgent(python, framework, held.url, ...(compliant === undefined ? [] : [`${compliant}`]));
    disposables.defer(agent.stop);
    const agents: FrameworkAgent[] = [{ name: `${name}-0`, url: agent.url, trimsEnd: false }];
    if (compliant !== undefined) agents.push({ name: `${name}-1`, url: `http://127.0.0.1:${compliant}/`, trimsEnd: true });
    return { held, agents };
  }

  test(`an agent of ${name} shows its answer once, byte for byte, in each profile [S2-2]`, {
    skip,
    timeout: TIMEOUT,
  }, async () => {
    const { agents } = await servers();
    const entries = agents.map(({ name, url }) => ({ name, adapter: 'a2a', url }));
    await using caipe = await Cluster.shared({ agents: entries });
    // The agents above serve this profile, too.
    await using transparent = await Cluster.shared({ profile: 'transparent', agents: [] });
    for (const [profile, cluster] of Object.entries({ caipe, transparent })) {
      for (const { name: agent, trimsEnd } of agents) {
        for (const { text, answer } of QUESTIONS[name]) {
          const whole = trimsEnd ? answer.trimEnd() : answer;
          const frames = await collect(cluster.url, { params: messageParams(text, { metadata: { agent } }) });
          const fold = new Fold();
          for (const { event } of frames) fold.add(event);
          assert.equal(fold.task?.status.state, 'TASK_STATE_COMPLETED');
          if (profile === 'caipe') {
            assert.deepEqual([textOf(frames, 'streaming_result'), textOf(frames, 'partial_result')], [whole, whole]);
            continue;
          }
          const answers = [...fold.artifacts.values()].filter(artifact => !kindOfArtifact(artifact)?.startsWith('call-'));
          const texts = answers.map(artifact => artifact.text).filter(shown => shown !== '');
          assert.ok(texts.length > 0);
          for (const shown of texts) assert.ok(whole.trimEnd().endsWith(shown.trimEnd()), JSON.stringify(shown));
        }
      }
    }
  });

  test(`an agent of ${name}: a failure, a cancel, files, and its question if it can ask`, {
    skip,
    timeout: TIMEOUT,
  }, async () => {
    const { failure, cancels, question, file } = ABILITIES[name];
    const { held, agents } = await servers();
    const agent = `${name}-abilities`;
    await using cluster = await Cluster.shared({ agents: [{ name: agent, adapter: 'a2a', url: agents.at(-1)!.url }] });
    const views = new ClientViews(cluster.url, agent);

    if (name === 'google-adk') {
      const { answer, tools, files } = await views.ask('steps');
      assert.deepEqual([answer, files], [`${STEP}${ANSWER}`, []]);
      const calls = tools.filter(call => call.agent === agent);
      assert.deepEqual(
        calls.map(({ tool, outcome, arguments: args, result }) => [tool, outcome, args, result]),
        [['look', 'completed', {}, { found: true }]],
      );
    }

    const failed = await views.ask('fail');
    assert.deepEqual([failed.state, failed.answer, failed.failure], ['TASK_STATE_FAILED', 'Let', failure]);

    const taskId = await views.send('wait');
    for await (const { answer } of views.client.watch(taskId)) if (answer === 'Let') break;
    await until(() => held.open === 1);
    await views.client.cancel(taskId);
    const canceled = await views.watched(taskId);
    assert.deepEqual([canceled.state, canceled.answer], ['TASK_STATE_CANCELED', 'Let']);
    if (!cancels) {
      assert.equal(held.open, 1);
      held.release();
    }
    await until(() => held.open === 0);
    assert.equal((await views.ask('hi')).answer, ANSWER);

    const read = await views.ask({ parts: [{ text: 'read' }, FILE] });
    assert.deepEqual([read.state, read.answer, filesOf(read)], ['TASK_STATE_COMPLETED', file.answer, file.sent]);

    if (name === 'google-adk') {
      const refused = [{ error: 'This tool call is rejected.' }, 'failed'];
      for (const [decision, [result, outcome]] of [
        [true, [{ paid: '17' }, 'completed']],
        [false, refused],
        ['yes', [{ paid: '17' }, 'completed']],
        ['not yet', refused],
      ] as const) {
        const asked = await views.ask('refund');
        const { approval, text } = asked.question!;
        const call = { tool: 'refund', arguments: { order: '17' } };
        assert.deepEqual([text, approval], ['Run refund with {"order":"17"}?', { callId: approval?.callId, ...call }]);
        const waiting = { ...call, outcome: 'waiting', result: undefined };
        assert.deepEqual(callsOf(asked), [waiting]);
        const answer = typeof decision === 'string' ? [{ text: decision }] : approvalResponse(approval!, decision);
        const answered = await views.answer(asked, answer);
        assert.deepEqual(
          [answered.state, answered.answer.includes(Object.keys(result as object)[0]!)],
          ['TASK_STATE_COMPLETED', true],
        );
        // ADK reports the result of the call, and not its beginning again.
        assert.deepEqual(callsOf(answered), [waiting, { ...call, arguments: undefined, outcome, result }]);
      }
    }

    if (question === undefined) return;
    for (const answer of [() => ({ text: 'blue' }), question.data]) {
      const asked = await views.ask('ask');
      assert.deepEqual([asked.state, asked.question?.text, filesOf(asked)], ['TASK_STATE_INPUT_REQUIRED', question.text, []]);
      const answered = await views.answer(asked, [answer(asked.question!.message!.parts)]);
      assert.deepEqual([answered.state, answered.answer], ['TASK_STATE_COMPLETED', 'You chose blue.']);
    }
  });
}

/** The calls of the agent's tools. */
function callsOf({ tools }: ClientView) {
  return tools
    .filter(call => call.tool === 'refund')
    .map(({ tool, arguments: args, outcome, result }) => ({ tool, arguments: args, outcome, result }));
}

function filesOf({ files }: ClientView): Part[] {
  return files.flatMap(({ parts }) => parts);
}
