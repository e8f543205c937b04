import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createAuthority, DAY_MS } from '../../integration/tls/certificates.ts';
import { demoAgents, Release } from '../release.ts';

const RECORDING = fileURLToPath(new URL('../../../infra/local/demo/guide.jsonl', import.meta.url));
export const NATS_NODES = 3;
/** Longer than HoplineCertificateExpires asks for. */
const CERTIFICATE_MS = 30 * DAY_MS;
/** All pods, and those of a rolling update, fit on two cores. */
const CPU_REQUEST = '50m';

/** The text that the demo agent answers. */
export function recordedAnswer(): string {
  const lines = readFileSync(RECORDING, 'utf8').split('\n');
  return lines
    .filter(line => line !== '')
    .map(line => (JSON.parse(line) as { t: string }).t)
    .join('');
}

type Pod = { name: string; uid: string };

/** A release with two processes of each service, three NATS nodes, metrics, and TLS with certificates from Secrets. */
export class Installation {
  readonly release = new Release('traffic');
  readonly authority = createAuthority('Authority of the traffic', CERTIFICATE_MS);
  /** Names of the certificates that were issued last. */
  subject = '';
  #revision = 1;
  #rotations = 0;

  get namespace(): string {
    return this.release.namespace;
  }

  async install(): Promise<void> {
    await this.release.createNamespace();
    await this.rotateCertificates();
    await this.release.upgrade(this.#values());
  }

  /** Changes a setting of all services, which has no other effect than to replace them. Returns it. */
  async changeSetting(): Promise<string> {
    this.#revision += 1;
    await this.release.upgrade(this.#values());
    return `revision ${this.#revision}`;
  }

  /** Replaces all three certificates, by others of the same authority. */
  async rotateCertificates(): Promise<void> {
    this.#rotations += 1;
    this.subject = `rotation-${this.#rotations}`;
    const local = ['localhost', '127.0.0.1'];
    const nodes = Array.from({ length: NATS_NODES }, (_, node) => `hopline-nats-${node}.hopline-nats`);
    await this.#putSecret('nats-tls', ['hopline-nats', ...nodes, ...local]);
    await this.#putSecret('clients-tls', ['services']);
    await this.#putSecret('ingress-tls', ['hopline-ingress', `hopline-ingress.${this.namespace}.svc`, ...local]);
  }

  async addAgent(name: string): Promise<void> {
    const { folder, entry } = demoAgents().guide;
    await this.release.addAgent(name, {
      folder,
      entry: { ...entry, default: false, skills: [] },
      tls: { enabled: true, clientsSecret: 'clients-tls' },
      pods: { resources: { requests: { cpu: CPU_REQUEST } } },
    });
  }

  /** Pods of the release by name. `ending`: also those that were deleted and have not ended. */
  async pods({ component, ending = false }: { component?: string; ending?: boolean } = {}): Promise<Pod[]> {
    const labels = ['app.kubernetes.io/instance=hopline', ...(component ? [`app.kubernetes.io/component=${component}`] : [])];
    const text = await this.release.kubectl('get', 'pods', '--selector', labels.join(','), '--output', 'json');
    const { items } = JSON.parse(text) as { items: { metadata: Pod & { deletionTimestamp?: string } }[] };
    const found = items.filter(({ metadata }) => ending || metadata.deletionTimestamp === undefined);
    return found.map(({ metadata: { name, uid } }) => ({ name, uid })).sort((a, b) => a.name.localeCompare(b.name));
  }

  async #putSecret(name: string, hosts: string[]): Promise<void> {
    const { cert, key } = this.authority.issue(this.subject, hosts);
    const stringData = { 'ca.crt': this.authority.cert, 'tls.crt': cert, 'tls.key': key };
    await this.release.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData });
  }

  #values(): object {
    return {
      agents: { guide: { ...demoAgents().guide, replicas: 2 } },
      notifier: { replicas: 2 },
      ingress: { tlsSecret: 'ingress-tls' },
      tls: { enabled: true, natsSecret: 'nats-tls', clientsSecret: 'clients-tls' },
      nats: { replicas: NATS_NODES, metrics: { enabled: true }, resources: { requests: { cpu: '100m' } } },
      pods: { resources: { requests: { cpu: CPU_REQUEST } } },
      settings: { OTEL_RESOURCE_ATTRIBUTES: `traffic.revision=${this.#revision}` },
    };
  }
}
