import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createAuthority, DAY_MS } from '../../integration/tls/certificates.ts';
import { CHART, demoAgents, Release } from '../release.ts';

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

/** A chart, and the image that its pods run: that of its version if undefined. */
type Version = { chart: string; image: { repository: string; tag: string } | undefined };

const NOW: Version = { chart: CHART, image: undefined };

/** The folder of a version that `version-before.ts` made. Throws if it is not one. */
function versionBefore(folder: string): Version {
  const chart = join(folder, 'chart');
  if (!existsSync(chart)) throw new Error(`HOPLINE_BEFORE must be a folder of test/kubernetes/version-before.ts, not ${folder}`);
  return { chart, image: { repository: 'hopline', tag: 'before' } };
}

/** A release with two processes of each service, three NATS nodes, metrics, and TLS with certificates from Secrets. */
export class Installation {
  readonly release = new Release('traffic');
  readonly authority = createAuthority('Authority of the traffic', CERTIFICATE_MS);
  /** Names of the certificates that were issued last. */
  subject = '';
  readonly #before: Version | undefined;
  #version: Version;
  #revision = 1;
  #rotations = 0;

  /** `before`: folder of the version that is installed first, and to which each second upgrade returns. */
  constructor(before = process.env.HOPLINE_BEFORE) {
    this.#before = before === undefined ? undefined : versionBefore(before);
    this.#version = this.#before ?? NOW;
  }

  get namespace(): string {
    return this.release.namespace;
  }

  async install(): Promise<void> {
    await this.release.createNamespace();
    await this.rotateCertificates();
    await this.#upgrade();
  }

  /**
   * Replaces all services: by those of the other version if there is one, and else by the same with a setting that has no other effect.
   * Returns the change.
   */
  async upgrade(): Promise<string> {
    this.#revision += 1;
    const imageBefore = await this.release.image();
    if (this.#before !== undefined) this.#version = this.#version === NOW ? this.#before : NOW;
    await this.#upgrade();
    const image = await this.release.image();
    return `revision ${this.#revision}${image === imageBefore ? '' : `, from ${imageBefore} to ${image}`}`;
  }

  async #upgrade(): Promise<void> {
    await this.release.upgrade(this.#values(), this.#version.chart);
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
    const { image } = this.#version;
    return {
      ...(image !== undefined && { image }),
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
