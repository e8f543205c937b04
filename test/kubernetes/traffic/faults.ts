import { readdirSync, readFileSync } from 'node:fs';
import { connect as connectPlain } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { Random } from '../../simulator/random.ts';
import { type ClientLine, isAnswer, Load } from '../load.ts';
import type { FaultName } from './fault-kinds.ts';
import { type Installation, NATS_NODES, recordedAnswer } from './installation.ts';
import type { NodeVolumes } from './node-volumes.ts';
import { forwardPort } from './port-forward.ts';
import { openWorkStream } from './work-stream.ts';

/** The cluster, the clients and the tools of a fault. */
export type FaultTarget = {
  installation: Installation;
  random: Random;
  /** Undefined: the volumes of this cluster cannot be filled. */
  volumes: NodeVolumes | undefined;
  /** Aborted when the run is to end. */
  signal: AbortSignal;
  /** Repeats a step that fails, and throws when it fails again and again. */
  step<T>(what: string, action: () => Promise<T>): Promise<T>;
  /** Everything that the clients of the run have printed so far. */
  lines(): Promise<readonly ClientLine[]>;
  /** Adds what other clients have printed. */
  add(lines: readonly ClientLine[]): void;
};

const VISITOR = 'visitor';
const VISITOR_ANSWERS = 6;
const ANSWERED_SECONDS_MAX = 180;
/** As `kubectl drain`. */
const EVICTION_RETRY_MS = 5_000;
const EVICTION_MS_MAX = 300_000;
/** The kubelet copies a changed Secret within about a minute. */
const ROTATED_MS_MAX = 180_000;
const POLL_MS = 2_000;
const SERVED_POLL_MS = 5_000;
const FULL_MS_MAX = 60_000;
/** Readings of the queued bytes, and the time between two attempts to find a bound that is small enough. */
const READINGS = 5;
const LOWER_MS = 15_000;
const REFUSALS_WANTED = 8;
const VOLUME_FULL_MS = 60_000;
/** The liveness probe restarts a node that met a full disk after five minutes. */
const VOLUME_BACK_MS_MAX = 480_000;

/** Each causes one fault, and resolves with what it hit when Kubernetes has repaired it. */
export const FAULTS: Readonly<Record<FaultName, (target: FaultTarget) => Promise<string>>> = {
  agent: visit,
  drain,
  upgrade: async ({ installation, step }) => {
    const change = await step('helm upgrade', () => installation.upgrade());
    await rolledOut(installation, step);
    return change;
  },
  nats: async ({ installation, step }) => {
    await step('rollout restart', () => installation.release.kubectl('rollout', 'restart', 'statefulset/hopline-nats'));
    await rolledOut(installation, step);
    return `${NATS_NODES} nodes, one after another`;
  },
  certificates: rotate,
  full: fillWorkStream,
  volume: fillVolume,
  relay: target => kill(target, 'relay'),
  supervisor: target => kill(target, 'supervisor'),
  subAgent: target => kill(target, 'agent-guide'),
  ingress: target => kill(target, 'ingress'),
};

const rolledOut = (installation: Installation, step: FaultTarget['step']) =>
  step('the rollout', () => installation.release.rolledOut());

async function visit({ installation, step, add, signal }: FaultTarget): Promise<string> {
  const { release, authority } = installation;
  await step('the installation of the agent', () => installation.addAgent(VISITOR));
  const image = await step('the image', () => release.image());
  const clients = { name: VISITOR, image, workers: 2, agent: VISITOR, expected: recordedAnswer(), authority: authority.cert };
  try {
    const load = await step('its clients', () => Load.start(release, clients));
    try {
      const endsAt = Date.now() + ANSWERED_SECONDS_MAX * 1_000;
      while (!signal.aborted && (await load.answers()).length < VISITOR_ANSWERS) {
        if (Date.now() > endsAt) throw new Error('its questions have no answers');
        await sleep(POLL_MS);
      }
      await load.finish(ANSWERED_SECONDS_MAX);
    } finally {
      add(await load.lines());
      await step('the removal of its clients', () => load.remove());
    }
  } finally {
    await step('the removal of the agent', () => release.helm('uninstall', VISITOR, '--wait', '--timeout', '120s'));
  }
  return 'two pods of it';
}

/** Evicts pods as a drain does, but without the mark on the node, because evicted pods find no other node here. */
async function drain({ installation, step, signal }: FaultTarget): Promise<string> {
  const { release, namespace } = installation;
  const pods = await step('the list of pods', () => installation.pods());
  let refusals = 0;
  for (const { name: pod, uid } of pods) {
    if (signal.aborted) break;
    const path = `/api/v1/namespaces/${namespace}/pods/${pod}/eviction`;
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod, namespace } };
    for (const endsAt = Date.now() + EVICTION_MS_MAX; ; await sleep(EVICTION_RETRY_MS)) {
      const refused = await release.create(path, eviction).then(
        () => undefined,
        (error: Error) => error.message,
      );
      if (refused === undefined || /NotFound|not found/.test(refused)) break;
      if (Date.now() > endsAt || signal.aborted) throw new Error(`${pod} could not be evicted: ${refused.slice(0, 200)}`);
      refusals += 1;
    }
    for (const endsAt = Date.now() + EVICTION_MS_MAX; !signal.aborted; await sleep(POLL_MS)) {
      if (!(await step('the list of pods', () => installation.pods({ ending: true }))).some(one => one.uid === uid)) break;
      if (Date.now() > endsAt) throw new Error(`${pod} was evicted and does not end`);
    }
  }
  await rolledOut(installation, step);
  return `${pods.length} pods; ${refusals} evictions refused at first`;
}

async function rotate({ installation, step, signal }: FaultTarget): Promise<string> {
  await step('the Secrets', () => installation.rotateCertificates());
  const startedAt = Date.now();
  const [ingress] = await step('the list of pods', () => installation.pods({ component: 'ingress' }));
  const nodes = Array.from({ length: NATS_NODES }, (_, node) => ({ pod: `hopline-nats-${node}`, port: 4222 }));
  for (const served of [...nodes, { pod: ingress!.name, port: 8000 }]) {
    const isServed = async () => (await servedSubject(installation, served).catch(() => undefined)) === installation.subject;
    for (; !(await isServed()); await sleep(SERVED_POLL_MS)) {
      if (signal.aborted) break;
      if (Date.now() - startedAt > ROTATED_MS_MAX) throw new Error(`${served.pod} still serves the certificate before`);
    }
  }
  return `${installation.subject}, served by NATS and ingress after at most ${Math.round((Date.now() - startedAt) / 1_000)} s`;
}

/** Name in the certificate that a pod serves. NATS speaks first, and in plain text. */
async function servedSubject(
  { namespace, authority }: Installation,
  { pod, port }: { pod: string; port: number },
): Promise<string | undefined> {
  await using stack = new AsyncDisposableStack();
  const local = await forwardPort(stack, { namespace, pod, port });
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
  const plain = connectPlain(local, '127.0.0.1');
  stack.defer(() => void plain.destroy());
  plain.once('error', reject).once('close', () => reject(new Error(`${pod} closed the connection`)));
  plain.setTimeout(10_000, () => plain.destroy());
  const secure = () => {
    const { cert, key } = authority.issue('services');
    const socket: TLSSocket = connectTls({ socket: plain, servername: 'localhost', ca: authority.cert, cert, key });
    stack.defer(() => void socket.destroy());
    socket.once('error', reject);
    socket.once('secureConnect', () => resolve([socket.getPeerCertificate().subject.CN].flat()[0]));
  };
  if (port === 4222) plain.once('data', secure);
  else plain.once('connect', secure);
  // Awaited here, because the connection ends with this function.
  return await promise;
}

/** The bound of the stream becomes less than what the questions of the clients need, so that they fill it. */
async function fillWorkStream({ installation, step, lines, signal }: FaultTarget): Promise<string> {
  await using stack = new AsyncDisposableStack();
  const stream = await step('the connection to NATS', () => openWorkStream(stack, installation));
  const bound = await step('the bound of the stream', () => stream.bound());
  const beganAt = Date.now();
  const refusals = async () => (await lines()).filter(line => !isAnswer(line) && 'refused' in line && line.at >= beganAt).length;
  let queued = 0;
  for (let reading = 0; reading < READINGS; reading += 1) {
    queued = Math.max(queued, await step('the size of the stream', () => stream.bytes()));
    await sleep(500);
  }
  // New messages may use three quarters of it, which is less than what is queued; the rest is for calls of running tasks.
  let lowered = Math.max(1_024, Math.floor(queued * 1.25));
  try {
    await step('the bound of the stream', () => stream.setBound(lowered));
    let lowerAt = Date.now() + LOWER_MS;
    for (const endsAt = beganAt + FULL_MS_MAX; Date.now() < endsAt && !signal.aborted; await sleep(POLL_MS)) {
      const count = await refusals();
      if (count >= REFUSALS_WANTED) break;
      if (count > 0 || Date.now() < lowerAt) continue;
      lowered = Math.max(1_024, Math.floor(lowered * 0.8));
      await step('the bound of the stream', () => stream.setBound(lowered));
      lowerAt += LOWER_MS;
    }
  } finally {
    await step('the former bound of the stream', async () => {
      // The first connection may have ended.
      await using again = new AsyncDisposableStack();
      await (await openWorkStream(again, installation)).setBound(bound);
    });
  }
  return `${lowered} bytes in place of ${bound}, for ${Math.round((Date.now() - beganAt) / 1_000)} s`;
}

async function fillVolume({ installation, volumes, random, step, signal }: FaultTarget): Promise<string> {
  if (volumes === undefined) throw new Error('the volumes of this cluster cannot be filled');
  const { release } = installation;
  const node = random.between(0, NATS_NODES - 1);
  const pod = `hopline-nats-${node}`;
  const restarts = () => release.kubectl('get', `pod/${pod}`, '--output', 'jsonpath={.status.containerStatuses[*].restartCount}');
  const before = await step('the restarts of the node', restarts);
  const empty = await volumes.fill(`data-${pod}`);
  const beganAt = Date.now();
  try {
    await sleep(VOLUME_FULL_MS, undefined, { signal }).catch(() => {});
  } finally {
    empty();
  }
  const health = `/api/v1/namespaces/${release.namespace}/pods/${pod}:8222/proxy/healthz`;
  const isHealthy = () =>
    release.kubectl('get', '--raw', health).then(
      text => /"ok"/.test(text),
      () => false,
    );
  for (; !(await isHealthy()); await sleep(POLL_MS)) {
    if (signal.aborted) break;
    if (Date.now() - beganAt > VOLUME_BACK_MS_MAX) throw new Error(`${pod} is not healthy again`);
  }
  const after = await step('the restarts of the node', restarts);
  const seconds = Math.round((Date.now() - beganAt) / 1_000);
  return `${pod}, full for ${VOLUME_FULL_MS / 1_000} s, healthy after ${seconds} s, ${before === after ? 'not restarted' : 'restarted'}`;
}

/** SIGKILL if the processes of the node are those of this machine, and the forced deletion of the pod otherwise or by the seed. */
async function kill({ installation, random, step }: FaultTarget, component: string): Promise<string> {
  const { release } = installation;
  const { name: pod, uid } = random.pick(await step('the list of pods', () => installation.pods({ component })));
  const processes = processesOf(uid);
  const isSignal = random.chance(0.5) && processes.length > 0;
  if (isSignal) for (const pid of processes) process.kill(pid, 'SIGKILL');
  else await release.kubectl('delete', `pod/${pod}`, '--grace-period=0', '--force', '--wait=false');
  await sleep(POLL_MS);
  await step('the rollout', () => release.kubectl('rollout', 'status', `deployment/hopline-${component}`, '--timeout=240s'));
  return `${pod}, ${isSignal ? 'SIGKILL' : 'deleted without a grace period'}`;
}

/** Processes of a pod that are visible here, without the one that holds its network. */
function processesOf(podUid: string): number[] {
  const read = (pid: string, name: string) => {
    try {
      return readFileSync(`/proc/${pid}/${name}`, 'utf8');
    } catch {
      return '';
    }
  };
  let pids: string[] = [];
  try {
    pids = readdirSync('/proc').filter(name => /^\d+$/.test(name));
  } catch {
    // Not Linux: no process of a pod is visible.
  }
  return pids.filter(pid => read(pid, 'cgroup').includes(podUid) && !read(pid, 'cmdline').startsWith('/pause')).map(Number);
}
