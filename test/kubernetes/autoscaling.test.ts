import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { until } from '../kit/until.ts';
import { missingPrograms } from './cluster.ts';
import { checkAnswers, Load } from './load.ts';
import { serveMetrics } from './metrics-api.ts';
import { demoAgents, Release } from './release.ts';

const TIMEOUT_MS = 900_000;
const missing = missingPrograms();
const options = { skip: missing ?? false, timeout: TIMEOUT_MS };
const STREAMS = 200;
/** The pace of a model. The recorded answer has 441 tokens, so it takes 22 s. */
const TOKENS_PER_SECOND = 20;
const SCALED = ['ingress', 'relay', 'supervisor'] as const;
/** So low that the burst, on the two cores of a test, asks for more pods of each role. */
const MILLICORES = 50;
const MIN = 2;
const MAX = 4;
const WAIT_MS_MAX = 300_000;
/** After which a quiet role loses a pod, instead of ten minutes. */
const QUIET_SECONDS = 30;

const release = new Release('autoscaling');
const stack = new AsyncDisposableStack();

type Scaler = { name: string; desired: number; current: number };

async function scalers(): Promise<Scaler[]> {
  const { items } = JSON.parse(await release.kubectl('get', 'hpa', '--output', 'json')) as {
    items: { metadata: { name: string }; status: { desiredReplicas?: number; currentReplicas?: number } }[];
  };
  return items.map(({ metadata: { name }, status }) => ({
    name,
    desired: status.desiredReplicas ?? 0,
    current: status.currentReplicas ?? 0,
  }));
}

/** The numbers of pods that each autoscaler has wanted, one after another. */
class Watched {
  readonly #wanted = new Map<string, number[]>();

  async look(): Promise<Map<string, number[]>> {
    for (const { name, desired } of await scalers()) {
      const before = this.#wanted.get(name) ?? [];
      if (desired > 0 && before.at(-1) !== desired) this.#wanted.set(name, [...before, desired]);
    }
    return this.#wanted;
  }
}

/** Millicores that each pod of the scaled roles has used in the last seconds, as an autoscaler reads them. */
async function millicores(): Promise<number[]> {
  const text = await release.kubectl('get', '--raw', `/apis/metrics.k8s.io/v1beta1/namespaces/${release.namespace}/pods`);
  const { items } = JSON.parse(text) as {
    items: { metadata: { labels: Record<string, string> }; containers: { usage: { cpu: string } }[] }[];
  };
  const scaled = items.filter(({ metadata }) => SCALED.some(role => metadata.labels['app.kubernetes.io/component'] === role));
  return scaled.map(({ containers }) => containers.reduce((sum, { usage }) => sum + Number.parseInt(usage.cpu, 10) / 1e6, 0));
}

const guide = demoAgents().guide;
const VALUES = {
  agents: { guide: { ...guide, entry: { ...guide.entry, pace: TOKENS_PER_SECOND }, replicas: 2 } },
  pods: { resources: { requests: { cpu: '50m' } } },
};
const autoscaling = { enabled: true, min: MIN, max: MAX, cpu: `${MILLICORES}m` };
const SCALED_VALUES = { ...VALUES, ...Object.fromEntries(SCALED.map(role => [role, { autoscaling }])) };

before(
  async () => {
    if (missing) return;
    stack.defer(() => release.close());
    await release.install(VALUES);
    await serveMetrics(stack, release);
    // The start of a process takes more than the target. Autoscalers that see it would add pods before the burst.
    await until(
      async () => {
        const used = await millicores();
        return used.length >= MIN * SCALED.length && used.every(one => one < MILLICORES / 2);
      },
      'the pods are quiet',
      WAIT_MS_MAX,
    );
    await release.upgrade(SCALED_VALUES);
  },
  { timeout: TIMEOUT_MS },
);

after(() => stack.disposeAsync());

test(`a burst of ${STREAMS} streams adds pods, removes none, and cuts no stream`, options, async () => {
  const watched = new Watched();
  await until(async () => (await scalers()).every(({ desired }) => desired === MIN), 'autoscalers want few pods', WAIT_MS_MAX);
  await watched.look();
  const load = await Load.start(release, { name: 'burst', image: await release.image(), workers: STREAMS });
  await until(
    async () => {
      await watched.look();
      return (await load.answers()).length >= 2 * STREAMS;
    },
    'the answers',
    WAIT_MS_MAX,
  );
  await load.finish(120);
  const answers = await load.stop();
  checkAnswers(`${STREAMS} streams`, answers);
  const wanted = await watched.look();
  process.stdout.write(`# pods wanted: ${[...wanted].map(([name, numbers]) => `${name} ${numbers.join(' ')}`).join('; ')}\n`);
  assert.ok(
    [...wanted.values()].some(numbers => numbers.length > 1),
    'an autoscaler wanted more pods',
  );
  for (const [name, numbers] of wanted)
    assert.deepEqual(
      numbers,
      numbers.toSorted((a, b) => a - b),
      name,
    );
  assert.equal(
    answers.reduce((sum, { drained, broken }) => sum + drained + broken, 0),
    0,
    'streams that were cut',
  );
});

test('when the burst is over, pods are removed one by one, and their streams resume elsewhere', options, async () => {
  const scaleDown = { stabilizationWindowSeconds: QUIET_SECONDS, policies: [{ type: 'Pods', value: 1, periodSeconds: 15 }] };
  await release.upgrade({ ...SCALED_VALUES, autoscalingBehavior: { scaleDown } });
  const load = await Load.start(release, { name: 'few', image: await release.image(), workers: 2 });
  await until(async () => (await scalers()).every(({ current }) => current === MIN), 'the pods of the burst leave', WAIT_MS_MAX);
  await load.finish(120);
  checkAnswers('after the burst', await load.stop());
});
