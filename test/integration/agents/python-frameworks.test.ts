import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fold } from '@hopline/a2a';
import { FRAMEWORKS, pythonWithFramework, startFrameworkAgent } from '../../support/agents/python-agent.ts';
import { collect, messageParams, textOf } from '../../support/cluster/a2a-stream.ts';
import { Cluster } from '../../support/cluster/cluster.ts';

const ANSWER = 'The answer: haha\r\n\r\n**bold** ✅ done 👩‍👩‍👧';
const STEP = 'Let me look it up.\n';
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

for (const framework of FRAMEWORKS) {
  const { name, variable } = framework;
  const found = await pythonWithFramework(framework);
  const python = 'python' in found ? found.python : '';
  const skip = 'skip' in found && `${found.skip}; or name one in ${variable}`;

  test(`an agent of ${name} shows its answer once, byte for byte, in each profile [S2-2]`, {
    skip,
    timeout: TIMEOUT,
  }, async t => {
    // Strands streams in two ways.
    const ways: string[][] = name === 'strands-agents' ? [[], ['compliant']] : [[]];
    const agents: { name: string; args: string[]; url: string }[] = [];
    for (const [index, args] of ways.entries()) {
      const agent = await startFrameworkAgent(python, framework, ...args);
      t.after(agent.stop);
      agents.push({ name: `${name}-${index}`, args, url: agent.url });
    }
    const entries = agents.map(({ name, url }) => ({ name, adapter: 'a2a', url }));
    await using caipe = await Cluster.shared({ agents: entries });
    // The agents above serve this profile, too.
    await using transparent = await Cluster.shared({ profile: 'transparent', agents: [] });
    for (const [profile, cluster] of Object.entries({ caipe, transparent })) {
      for (const { name: agent, args } of agents) {
        for (const { text, answer } of QUESTIONS[name]) {
          const whole = args.includes('compliant') ? answer.trimEnd() : answer;
          const frames = await collect(cluster.url, { params: messageParams(text, { metadata: { agent } }) });
          const fold = new Fold();
          for (const { event } of frames) fold.add(event);
          assert.equal(fold.task?.status.state, 'TASK_STATE_COMPLETED');
          if (profile === 'caipe') {
            assert.deepEqual([textOf(frames, 'streaming_result'), textOf(frames, 'partial_result')], [whole, whole]);
            continue;
          }
          const texts = [...fold.artifacts.values()].map(artifact => artifact.text).filter(shown => shown !== '');
          assert.ok(texts.length > 0);
          for (const shown of texts) assert.ok(whole.trimEnd().endsWith(shown.trimEnd()), JSON.stringify(shown));
        }
      }
    }
  });
}
