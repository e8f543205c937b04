import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Release } from './release.ts';

const SCRIPT = readFileSync(new URL('load-client.mjs', import.meta.url), 'utf8');
const POLL_MS = 1_000;

/** A client's record of one question. */
export type Answer = {
  /** Times in milliseconds since 1970: the end of the answer and the question. */
  at: number;
  beganAt: number;
  ms: number;
  question: string;
  refused: number;
  failed: string[];
  drained: number;
  broken: number;
  gaps: number;
  silencesMs: number[];
  /** `completed`, or another state with its reason. */
  state: string;
  task: string;
  hash: string;
  length: number;
  /** Texts of artifacts that are not the expected one. */
  wrong?: string[];
};

/** An event of a client. `at`: milliseconds since 1970. */
type ClientEvent = { at: number } & (
  | { asked: string }
  | { refused: string }
  | { failed: string; question: string }
  | { silenceMs: number; question: string }
);

export type ClientLine = Answer | ClientEvent;

type LoadOptions = {
  name: string;
  image: string;
  workers: number;
  /** The agent that is asked; the default one otherwise. */
  agent?: string;
  /** The text of every artifact of an answer. Answers with another one have it in `wrong`. */
  expected?: string;
  /** PEM of the authority of ingress, which then serves HTTPS. */
  authority?: string;
};

/** Clients in a pod of the cluster that ask through the Service without a pause, and resume as the protocol describes. */
export class Load {
  readonly #release: Release;
  readonly #name: string;

  private constructor(release: Release, name: string) {
    this.#release = release;
    this.#name = name;
  }

  static async start(release: Release, { name, image, workers, agent, expected, authority }: LoadOptions): Promise<Load> {
    const env = {
      URL: `${authority === undefined ? 'http' : 'https'}://hopline-ingress:8000/`,
      QUESTION: 'explain hopline',
      WORKERS: `${workers}`,
      ...(agent !== undefined && { AGENT: agent }),
      ...(expected !== undefined && { EXPECTED_FILE: '/load/expected.txt' }),
      ...(authority !== undefined && { NODE_EXTRA_CA_CERTS: '/load/ca.crt' }),
    };
    const files = {
      'load-client.mjs': SCRIPT,
      ...(expected !== undefined && { 'expected.txt': expected }),
      ...(authority !== undefined && { 'ca.crt': authority }),
    };
    const container = {
      name: 'client',
      image,
      imagePullPolicy: 'IfNotPresent',
      command: ['/nodejs/bin/node', '/load/load-client.mjs'],
      env: Object.entries(env).map(([variable, value]) => ({ name: variable, value })),
      securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
      volumeMounts: [{ name: 'script', mountPath: '/load' }],
    };
    const spec = {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 65_532, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [container],
      volumes: [{ name: 'script', configMap: { name } }],
    };
    await release.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: files });
    await release.apply({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec });
    return new Load(release, name);
  }

  /** The lines that the clients printed. `tail`: only so many of the last ones. Empty while the pod has no log. */
  async lines(tail = -1): Promise<ClientLine[]> {
    const lines = await this.#release.kubectl('logs', this.#name, `--tail=${tail}`).catch(() => '');
    return lines.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line) as ClientLine]));
  }

  async answers(): Promise<Answer[]> {
    return (await this.lines()).filter(isAnswer);
  }

  /** Resolves when the given number of further answers is complete. */
  async complete(more: number): Promise<void> {
    const count = (await this.answers()).length + more;
    while ((await this.answers()).length < count) await sleep(POLL_MS);
  }

  /** The clients ask no further question. Resolves when every one is answered; rejects if one is not after `secondsMax`. */
  async finish(secondsMax: number): Promise<void> {
    await this.#release.kubectl('exec', this.#name, '--', '/nodejs/bin/node', '--eval', 'process.kill(1, "SIGUSR2")');
    const ended = ['--for', 'jsonpath={.status.phase}=Succeeded', `--timeout=${secondsMax}s`];
    await this.#release.kubectl('wait', `pod/${this.#name}`, ...ended);
  }

  async remove(): Promise<void> {
    await this.#release.kubectl('delete', `pod/${this.#name}`, `configmap/${this.#name}`);
  }

  /** Stops the clients and returns their records. */
  async stop(): Promise<Answer[]> {
    const answers = await this.answers();
    await this.remove();
    return answers;
  }
}

export function isAnswer(line: ClientLine): line is Answer {
  return 'state' in line;
}

/** Asserts that no request failed (unless connections may be refused), and that no text was lost or doubled. Prints the figures. */
export function checkAnswers(what: string, answers: readonly Answer[], { refusedConnectionsAllowed = false } = {}): void {
  const sum = (of: (answer: Answer) => number) => answers.reduce((total, answer) => total + of(answer), 0);
  const silencesMs = answers.flatMap(answer => answer.silencesMs).sort((a, b) => a - b);
  const failed = answers.flatMap(answer => answer.failed);
  const figures = [
    `${answers.length} answers`,
    `${failed.length} failed requests`,
    `${sum(answer => answer.refused)} refused with Retry-After`,
    `${sum(answer => answer.drained)} drained and ${sum(answer => answer.broken)} broken streams resumed`,
    `silence p50 ${quantile(silencesMs, 0.5)}, p99 ${quantile(silencesMs, 0.99)}, longest ${silencesMs.at(-1)} ms`,
  ];
  process.stdout.write(`# ${what}: ${figures.join('; ')}\n`);
  assert.deepEqual(
    failed.filter(reason => !(refusedConnectionsAllowed && reason.endsWith(': ECONNREFUSED'))),
    [],
  );
  assert.equal(
    sum(answer => answer.gaps),
    0,
    'gaps',
  );
  assert.deepEqual([...new Set(answers.map(answer => answer.state))], ['completed']);
  const texts = new Map(answers.map(({ hash, task, length }) => [hash, `${length} characters in task ${task}`]));
  assert.equal(texts.size, 1, `every answer has the same text: ${[...texts.values()].join(', ')}`);
  assert.ok(answers[0]!.length > 0, 'answers have text');
  assert.equal(new Set(answers.map(answer => answer.task)).size, answers.length, 'every question has one task');
}

function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0;
}
