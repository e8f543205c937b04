import { execFileSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { canMountDisk, fillDisk } from '../../support/small-disk.ts';
import type { Release } from '../release.ts';

/** More than the log of some hours of this load, and little enough to fill in a second. */
const VOLUME_BYTES = 2 ** 30;
const FILLER = 'filler';

type PersistentVolume = {
  metadata: { name: string };
  spec: { hostPath?: { path: string }; claimRef?: { namespace: string; name: string } };
  status: { phase: string };
};

/** Small disks in memory in the place of the volumes, if the only node of the cluster is this machine and its volumes are folders. */
export class NodeVolumes {
  readonly #release: Release;
  readonly #paths = new Map<string, string>();

  private constructor(release: Release) {
    this.#release = release;
  }

  /** Call it before the first claim. Undefined if that is not possible here. */
  static async mount(stack: AsyncDisposableStack, release: Release): Promise<NodeVolumes | undefined> {
    const server = await release.kubectl('config', 'view', '--minify', '--output', 'jsonpath={.clusters[0].cluster.server}');
    const nodes = (await release.kubectl('get', 'nodes', '--output', 'name')).trim().split('\n');
    if (!canMountDisk || nodes.length !== 1 || !/^https:\/\/(127\.0\.0\.1|localhost):/.test(server)) return undefined;
    const { items } = JSON.parse(await release.kubectl('get', 'pv', '--output', 'json')) as { items: PersistentVolume[] };
    const free = items.filter(({ spec, status }) => status.phase === 'Available' && existsSync(spec.hostPath?.path ?? ''));
    if (free.length === 0) return undefined;
    const volumes = new NodeVolumes(release);
    stack.defer(() => volumes.#unmount());
    for (const { metadata, spec } of free) {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${VOLUME_BYTES},mode=777`, 'hopline-traffic', spec.hostPath!.path]);
      volumes.#paths.set(metadata.name, spec.hostPath!.path);
    }
    return volumes;
  }

  /** Fills the disk of a claim. The result empties it again. */
  async fill(claim: string): Promise<() => void> {
    const name = await this.#release.kubectl('get', `pvc/${claim}`, '--output', 'jsonpath={.spec.volumeName}');
    const path = this.#paths.get(name);
    if (path === undefined) throw new Error(`the volume of ${claim} is not a disk of this run`);
    const filler = join(path, FILLER);
    fillDisk(filler);
    return () => rmSync(filler, { force: true });
  }

  /** Leaves the volumes empty and free for another claim. */
  async #unmount(): Promise<void> {
    for (const [name, path] of this.#paths) {
      execFileSync('umount', ['-l', path]);
      const patch = JSON.stringify({ spec: { claimRef: null } });
      await this.#release.kubectl('patch', `pv/${name}`, '--type', 'merge', '--patch', patch).catch(() => {});
    }
  }
}
