import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort } from '@hopline/local-cluster';
import { parse } from 'yaml';

export const CHART = fileURLToPath(new URL('../../infra/helm/hopline', import.meta.url));
const AGENT_CHART = fileURLToPath(new URL('../../infra/helm/hopline-agent', import.meta.url));
const CLI = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url));
/** Values for a cluster whose network enforces policies, and knows IPv4 only. */
export const IPV4_POLICIES = { privateRanges: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'] };
const RETRY_MS = 200;
const run = promisify(execFile);
/** More than the notices that come before the text of an agent. */
const PLAN_CHARS_MAX = 200;

type ChartAgent = { folder: string; entry: object; [value: string]: unknown };

/** The agents of the demo by name, as in `agents` of the chart. */
export function demoAgents(): { guide: ChartAgent; files: ChartAgent } {
  const list = parse(readFileSync(join(CHART, 'files/demo-agents.yaml'), 'utf8')) as (ChartAgent & { name: string })[];
  const [guide, files] = list.map(({ name: _name, ...agent }) => agent as ChartAgent);
  return { guide: guide!, files: files! };
}

/** A release of the chart in its own namespace, which enforces the restricted Pod Security Standard. */
export class Release {
  readonly namespace: string;
  readonly #forwards = new Set<ChildProcess>();
  #isClosed = false;

  constructor(name = 'test') {
    this.namespace = `hopline-${name}-${process.pid}`;
  }

  async kubectl(...args: string[]): Promise<string> {
    const { stdout } = await run('kubectl', ['--namespace', this.namespace, ...args], { maxBuffer: 1 << 26 });
    return stdout;
  }

  async helm(...args: string[]): Promise<string> {
    const { stdout } = await run('helm', ['--namespace', this.namespace, ...args], { maxBuffer: 1 << 26 });
    return stdout;
  }

  async apply(manifest: object): Promise<void> {
    await this.#send(manifest, 'apply');
  }

  /** Posts an object to a path of the API. */
  async create(path: string, object: object): Promise<void> {
    await this.#send(object, 'create', '--raw', path);
  }

  async #send(object: object, ...command: string[]): Promise<void> {
    const sent = run('kubectl', ['--namespace', this.namespace, ...command, '--filename', '-']);
    sent.child.stdin?.end(JSON.stringify(object));
    await sent;
  }

  async install(values: object = {}, chart = CHART): Promise<void> {
    await this.createNamespace();
    await this.upgrade(values, chart);
  }

  /** Creates the namespace. `install` does so by itself. */
  async createNamespace(): Promise<void> {
    await this.kubectl('create', 'namespace', this.namespace);
    const enforce = 'pod-security.kubernetes.io/enforce=restricted';
    await this.kubectl('label', 'namespace', this.namespace, enforce);
  }

  /** Runs a Node script in its own pod, in the image of ingress. Resolves with its output. */
  async runScript(name: string, script: string): Promise<string> {
    const container = {
      name: 'script',
      image: await this.image(),
      imagePullPolicy: 'IfNotPresent',
      command: ['/nodejs/bin/node', '--eval', script],
      securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
    };
    const spec = {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 65_532, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [container],
    };
    await this.apply({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec });
    await this.kubectl('wait', '--for', 'jsonpath={.status.phase}=Succeeded', `pod/${name}`, '--timeout=120s');
    return this.kubectl('logs', name);
  }

  /** Installs an agent as a separate release. */
  async addAgent(name: string, values: object): Promise<void> {
    await this.upgrade(values, AGENT_CHART, name);
  }

  /**
   * Callers need no credentials, unless the values require some. Waits until every pod is ready, unless `waits` is false. Without --reset-values, helm treats `{}` as no values and keeps those of the
   * previous release, including its image.
   */
  async upgrade(values: object, chart = CHART, name = 'hopline', waits = true): Promise<void> {
    const wait = waits ? ['--wait'] : [];
    const upgrade = ['upgrade', '--install', name, chart, '--reset-values', '--values', '-', ...wait, '--timeout', '240s'];
    const helm = run('helm', ['--namespace', this.namespace, ...upgrade], { maxBuffer: 1 << 26 });
    helm.child.stdin?.end(JSON.stringify({ allowUnauthenticated: true, ...values }));
    await helm;
  }

  /** Names of the running pods of one component. */
  async pods(component: string): Promise<string[]> {
    const selector = `app.kubernetes.io/component=${component}`;
    const running = await this.kubectl(
      'get',
      'pods',
      '--selector',
      selector,
      '--field-selector',
      'status.phase=Running',
      '--output',
      'name',
    );
    return running.split('\n').filter(name => name !== '');
  }

  /** Publishes the Service (or a pod) on a port of this machine, and does so again whenever the pod behind it ends. */
  async forward(target = 'service/hopline-ingress'): Promise<string> {
    const port = await freePort();
    const open = () => {
      if (this.#isClosed) return;
      const child = spawn('kubectl', ['--namespace', this.namespace, 'port-forward', target, `${port}:8000`], {
        stdio: 'ignore',
      });
      this.#forwards.add(child);
      child.once('exit', () => {
        this.#forwards.delete(child);
        setTimeout(open, RETRY_MS).unref();
      });
    };
    open();
    const url = `http://127.0.0.1:${port}/`;
    await this.reachable(url);
    return url;
  }

  /** Waits until a forwarded address answers. Every A2A server has a card, and the probes are on a port that no Service has. */
  async reachable(url: string): Promise<void> {
    while (
      !(await fetch(`${url}.well-known/agent-card.json`)
        .then(response => response.ok)
        .catch(() => false))
    ) {
      await new Promise(resolve => setTimeout(resolve, RETRY_MS));
    }
  }

  /** The image of ingress. */
  async image(): Promise<string> {
    return this.kubectl('get', 'deployment/hopline-ingress', '--output', 'jsonpath={.spec.template.spec.containers[0].image}');
  }

  /** Waits until the pods of every service, including NATS, match the newest template. */
  async rolledOut(): Promise<void> {
    const workloads = await this.kubectl('get', 'deployment,statefulset', '--output', 'name');
    for (const name of workloads.split('\n').filter(one => one !== '')) {
      await this.kubectl('rollout', 'status', name, '--timeout=240s');
    }
  }

  /** Asks with the command line, which resumes by itself. Resolves with the text of the answer. */
  async ask(url: string, question: string): Promise<string> {
    return this.cli('ask', '--url', url, question);
  }

  /** Like `ask`. `begun` resolves once text of the answer has been printed, so that a fault then hits a running turn. */
  asking(url: string, question: string): { begun: Promise<void>; answer: Promise<string> } {
    const begun = Promise.withResolvers<void>();
    const running = run(process.execPath, [CLI, 'ask', '--url', url, question], { maxBuffer: 1 << 26 });
    let printed = 0;
    running.child.stdout?.on('data', (text: string | Buffer) => {
      printed += text.length;
      if (printed > PLAN_CHARS_MAX) begun.resolve();
    });
    const answer = running.then(({ stdout }) => stdout);
    answer.catch(begun.reject);
    return { begun: begun.promise, answer };
  }

  async cli(...args: string[]): Promise<string> {
    return this.cliWith({}, ...args);
  }

  /** Runs the command line with additional environment variables. */
  async cliWith(environment: Record<string, string>, ...args: string[]): Promise<string> {
    const { stdout } = await run(process.execPath, [CLI, ...args], {
      env: { ...process.env, ...environment },
      maxBuffer: 1 << 26,
    });
    return stdout;
  }

  async uninstall(): Promise<void> {
    await this.helm('uninstall', 'hopline', '--wait', '--timeout', '120s');
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const child of this.#forwards) child.kill();
    await run('kubectl', ['delete', 'namespace', this.namespace, '--wait=false']).catch(() => {});
  }
}
