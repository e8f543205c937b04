import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type DialectName, decodeSse, type StreamResponse } from '@hopline/a2a';
import { isQueueNotice } from '@hopline/events';
import { until } from '../kit/until.ts';
import { type RemoteAgent, type Step, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { type Frame, frames, rpc, textOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import * as legacy from '../support/cluster/legacy-client.ts';

const TIMEOUT = { timeout: 120_000 };
const SUPERVISORS = 3;
const OF_AGENT = /^⏳ Waiting for a free slot of Busy: (next in the queue|1 request is ahead|about \d+ requests are ahead)\.\n$/;
const OF_SUPERVISOR = /^⏳ Waiting for a free supervisor: next in the queue\.\n$/;

/** An answer that waits until the test lets it begin. Agent, supervisors and relay have one slot each. */
class Gate {
  readonly #open = Promise.withResolvers<void>();
  readonly open = () => this.#open.resolve();
  async *script(): AsyncGenerator<Step> {
    await this.#open.promise;
    yield { token: 'the ' };
    yield { token: 'answer' };
    yield { complete: true };
  }
}

/** A stream that is being read. */
class Asked {
  readonly list: Frame[] = [];
  readonly done: Promise<void>;

  constructor(url: string, dialect: DialectName = '0.3') {
    const role = dialect === '1.0' ? 'ROLE_USER' : 'user';
    const part = dialect === '1.0' ? { text: 'hi' } : { kind: 'text', text: 'hi' };
    const message = { ...(dialect === '0.3' && { kind: 'message' }), role, messageId: crypto.randomUUID(), parts: [part] };
    const method = dialect === '1.0' ? 'SendStreamingMessage' : 'message/stream';
    this.done = (async () => {
      for await (const frame of frames(url, { dialect, method, params: { message } })) this.list.push(frame);
    })();
  }

  get taskId(): string {
    const [first] = this.list;
    assert.ok(first !== undefined && 'task' in first.event);
    return first.event.task.id;
  }

  /** Texts of the queue notices, in order: messages of statuses, and content of the progress artifact. */
  get notices(): string[] {
    return this.list.flatMap(({ event }) => noticeOf(event) ?? []);
  }
}

function noticeOf(event: StreamResponse): string | undefined {
  if ('statusUpdate' in event) {
    const { message } = event.statusUpdate.status;
    return isQueueNotice(message) ? message!.parts[0]!.text : undefined;
  }
  if (!('artifactUpdate' in event) || event.artifactUpdate.artifact.name !== 'progress') return undefined;
  return event.artifactUpdate.artifact.parts[0]!.text;
}

async function taskOf(url: string, id: string) {
  const response = await rpc(url, { dialect: '1.0', method: 'GetTask', params: { id } });
  // biome-ignore lint/suspicious/noExplicitAny: a test fails where an expected member is missing.
  return ((await response.json()) as { result: any }).result;
}

const PROFILES = ['caipe', 'transparent', 'aion'];
let gate = new Gate();
let remote: RemoteAgent;
/** Its ingresses have the profiles above, in their order. */
let cluster: Cluster;

before(async () => {
  remote = await startRemoteAgent({ dialect: '1.0', script: () => gate.script() });
  const agents = [{ name: 'busy', adapter: 'a2a', url: remote.url }];
  cluster = await Cluster.start({ agents, supervisors: SUPERVISORS, users: true, env: { HOPLINE_SLOTS: '1' } });
  for (const profile of PROFILES.slice(1)) await cluster.addIngress(`ingress-${profile}`, { HOPLINE_PROFILE: profile });
});

after(async () => {
  gate.open();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

for (const [index, profile] of PROFILES.entries()) {
  describe(profile, () => {
    const urlOf = () => cluster.ingresses[index]!.url;
    const answerName = { caipe: 'partial_result', transparent: 'response', aion: 'Stream Delta' }[profile]!;

    test(
      'a client whose turn waits for a slot reads which agent it waits for and how many turns are ahead, and then its answer',
      TIMEOUT,
      async () => {
        gate = new Gate();
        const before = remote.requests.length;
        const first = new Asked(urlOf());
        await until(() => remote.requests.length === before + 1, 'the slot of the agent is taken');
        const others = [new Asked(urlOf()), new Asked(urlOf(), '1.0')];
        await until(() => others.every(({ notices }) => OF_AGENT.test(notices.at(-1) ?? '')), 'the others wait for the agent');
        const last = new Asked(urlOf());
        await until(() => OF_SUPERVISOR.test(last.notices.at(-1) ?? ''), 'the last one waits for a supervisor');
        const waiting = await taskOf(urlOf(), last.taskId);
        assert.equal(waiting.status.state, 'TASK_STATE_SUBMITTED');
        assert.match(waiting.status.message.parts[0].text, OF_SUPERVISOR);
        const seen = await taskOf(urlOf(), others[0]!.taskId);
        const shown = profile === 'caipe' ? seen.artifacts.at(-1) : seen.status.message;
        assert.match(shown.parts[0].text, OF_AGENT);
        gate.open();
        const all = [first, ...others, last];
        await Promise.all(all.map(({ done }) => done));
        assert.deepEqual(first.notices, [], 'the first had a slot');
        for (const asked of all) {
          assert.equal(textOf(asked.list, answerName), 'the answer');
          const task = await taskOf(urlOf(), asked.taskId);
          assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
          assert.doesNotMatch(JSON.stringify(task), /Waiting for/, 'nothing of the notice stays in the task');
        }
      },
    );

    /** Two questions: the first has the only slot of the agent until the gate opens, and the second waits for it. */
    async function askTwo(): Promise<[first: Asked, second: Asked]> {
      gate = new Gate();
      const before = remote.requests.length;
      const first = new Asked(urlOf());
      await until(() => remote.requests.length === before + 1, 'the slot of the agent is taken');
      const second = new Asked(urlOf());
      await until(() => second.notices.length > 0, 'the second waits');
      return [first, second];
    }

    test('a notice is gone when the turn begins, before its first text', TIMEOUT, async () => {
      const [first, second] = await askTwo();
      gate.open();
      await Promise.all([first.done, second.done]);
      const events = second.list.map(({ event }) => event);
      const firstText = events.findIndex(event => JSON.stringify(event).includes('"the '));
      const lastNotice = events.findLastIndex(event => OF_AGENT.test(noticeOf(event) ?? ''));
      const cleared = events.findIndex(
        (event, index) =>
          index > lastNotice &&
          (profile === 'caipe' ? noticeOf(event) === '' : 'statusUpdate' in event && !event.statusUpdate.status.message),
      );
      assert.ok(lastNotice >= 0 && lastNotice < cleared, `${lastNotice}, ${cleared}`);
      if (profile !== 'caipe') assert.ok(cleared < firstText, `${cleared}, ${firstText}`);
    });

    test('a message that arrives while a turn waits adds no notice to the history', TIMEOUT, async () => {
      const [first, second] = await askTwo();
      const params = {
        message: { role: 'ROLE_USER', messageId: crypto.randomUUID(), taskId: second.taskId, parts: [{ text: 'and?' }] },
      };
      const sent = frames(urlOf(), { dialect: '1.0', method: 'SendStreamingMessage', params });
      await sent.next();
      const { history } = await taskOf(urlOf(), second.taskId);
      assert.deepEqual(
        history.map(({ parts }: { parts: { text: string }[] }) => parts[0]!.text),
        ['hi', 'and?'],
      );
      gate.open();
      for await (const _frame of sent);
      await Promise.all([first.done, second.done]);
    });

    test('a client of the agent itself, or of the April 2025 dialect, also gets the notice', TIMEOUT, async () => {
      gate = new Gate();
      const before = remote.requests.length;
      const first = new Asked(urlOf());
      await until(() => remote.requests.length === before + 1, 'the slot of the agent is taken');
      const direct = new Asked(cluster.agents[0]!.url);
      const old = await legacy.post(urlOf(), 'tasks/sendSubscribe', legacy.ask(crypto.randomUUID(), 'hi'));
      const list: legacy.Frame[] = [];
      const reading = (async () => {
        for await (const { data } of decodeSse(old.body!)) list.push({ id: undefined, data: JSON.parse(data), atMs: 0 });
      })();
      await until(() => OF_AGENT.test(direct.notices.at(-1) ?? '') && JSON.stringify(list).includes('Waiting for'), 'both wait');
      gate.open();
      await Promise.all([first.done, direct.done, reading]);
      assert.equal(textOf(direct.list, 'response'), 'the answer');
      assert.equal(legacy.states(list).at(-1), 'completed');
    });
  });
}
