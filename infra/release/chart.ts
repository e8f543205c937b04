import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { create } from 'tar';
import { parse } from 'yaml';

export const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';

export type Chart = {
  name: string;
  version: string;
  /** The archive of `helm package`. */
  path: string;
  /** The chart as an OCI archive, for registries: `oras copy --from-oci-layout`, `skopeo copy oci-archive:…`. */
  ociPath: string;
  /** Digest of the manifest, which is one of the blobs. */
  digest: string;
  blobs: ReadonlyMap<string, Buffer>;
};

/** Packs the chart in `folder`, as an archive and as an OCI archive. The same files and time give the same bytes. */
export async function packChart(folder: string, outFolder: string, time: Date): Promise<Chart> {
  const about = parse(readFileSync(join(folder, 'Chart.yaml'), 'utf8')) as { name: string; version: string };
  const { name, version } = about;
  const path = join(outFolder, `${name}-${version}.tgz`);
  const archive = { portable: true, mtime: time };
  await create({ ...archive, file: path, gzip: true, cwd: dirname(folder) }, [basename(folder)]);

  const blobs = new Map<string, Buffer>();
  const add = (mediaType: string, content: Buffer) => {
    const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`;
    blobs.set(digest, content);
    return { mediaType, digest, size: content.length };
  };
  const json = (value: unknown) => Buffer.from(JSON.stringify(value));
  const config = add('application/vnd.cncf.helm.config.v1+json', json(about));
  const layer = add('application/vnd.cncf.helm.chart.content.v1.tar+gzip', readFileSync(path));
  const manifest = add(MANIFEST_TYPE, json({ schemaVersion: 2, mediaType: MANIFEST_TYPE, config, layers: [layer] }));

  const layout = mkdtempSync(join(tmpdir(), 'hopline-chart-'));
  try {
    mkdirSync(join(layout, 'blobs/sha256'), { recursive: true });
    for (const [digest, content] of blobs) writeFileSync(join(layout, 'blobs', digest.replace(':', '/')), content);
    const annotations = { 'org.opencontainers.image.ref.name': version };
    writeFileSync(join(layout, 'index.json'), json({ schemaVersion: 2, manifests: [{ ...manifest, annotations }] }));
    writeFileSync(join(layout, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }));
    const ociPath = join(outFolder, `${name}-${version}.oci.tar`);
    await create({ ...archive, file: ociPath, cwd: layout }, ['oci-layout', 'index.json', 'blobs']);
    return { name, version, path, ociPath, digest: manifest.digest, blobs };
  } finally {
    rmSync(layout, { recursive: true, force: true });
  }
}
