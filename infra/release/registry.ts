import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename } from 'node:path';
import { type Chart, MANIFEST_TYPE } from './chart.ts';
import type { Tarball } from './npm-pack.ts';

export type Registry = { url: string; close: () => Promise<void> };

/** `digest` of a chart's content. Undefined answers are 404. */
type Answer = { type: string; body: string | Buffer; digest?: string } | { location: string } | undefined;

const JSON_TYPE = 'application/json';
const BYTES_TYPE = 'application/octet-stream';

/** Names that the public registry may have from a stranger. */
const OURS = /^(?:hopline|create-hopline|@hopline\/.*)$/;

/**
 * A registry on 127.0.0.1 for npm and Helm, with the output of a dry run. Requests for other packages are redirected to `upstream`. It
 * answers reads only.
 */
export async function startRegistry(
  { tarballs, charts }: { tarballs: readonly Tarball[]; charts: readonly Chart[] },
  { port = 0, upstream }: { port?: number; upstream: string },
): Promise<Registry> {
  const packages = new Map(tarballs.map(tarball => [tarball.name, tarball]));
  const server = createServer(({ method, url = '/', headers }, response) => {
    const path = decodeURIComponent(new URL(url, 'http://registry/').pathname);
    const here = `http://${headers.host}/`;
    const answer = path.startsWith('/v2/')
      ? helmAnswer(charts, path)
      : npmAnswer(packages, path, here, new URL(url.slice(1), upstream).href);
    if (answer === undefined || (method !== 'GET' && method !== 'HEAD')) {
      response.writeHead(404, { 'content-type': JSON_TYPE }).end('{"error":"not found"}');
    } else if ('location' in answer) {
      response.writeHead(302, answer).end();
    } else {
      if (answer.digest !== undefined) response.setHeader('docker-content-digest', answer.digest);
      response.writeHead(200, { 'content-type': answer.type, 'content-length': Buffer.byteLength(answer.body) }).end(answer.body);
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve);
  });
  const close = () =>
    new Promise<void>(resolve => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close };
}

function npmAnswer(packages: ReadonlyMap<string, Tarball>, path: string, here: string, location: string): Answer {
  const [name = '', file] = path.slice(1).split('/-/');
  const tarball = packages.get(name);
  if (tarball === undefined) return OURS.test(name) ? undefined : { location };
  if (file === undefined) return { type: JSON_TYPE, body: JSON.stringify(documentOf(tarball, here)) };
  return file === basename(tarball.path) ? { type: BYTES_TYPE, body: readFileSync(tarball.path) } : undefined;
}

/** The answer to npm about a package: its version, with the address and the checksum of the tarball. */
function documentOf({ name, version, manifest, path, integrity, shasum }: Tarball, here: string): object {
  const dist = { integrity, shasum, tarball: `${here}${name}/-/${basename(path)}` };
  return {
    _id: name,
    name,
    'dist-tags': { latest: version },
    versions: { [version]: { ...manifest, _id: `${name}@${version}`, dist } },
  };
}

/** The part of the OCI distribution API that `helm pull` and `helm install` use. */
function helmAnswer(charts: readonly Chart[], path: string): Answer {
  if (path === '/v2/') return { type: JSON_TYPE, body: '{}' };
  const [, name, kind, reference = ''] = /^\/v2\/charts\/([a-z-]+)\/(manifests|blobs|tags)\/(.+)$/.exec(path) ?? [];
  const chart = charts.find(one => one.name === name);
  if (chart === undefined) return undefined;
  if (kind === 'tags') return { type: JSON_TYPE, body: JSON.stringify({ name, tags: [chart.version] }) };
  const digest = reference === chart.version ? chart.digest : reference;
  const body = chart.blobs.get(digest);
  return body && { type: kind === 'manifests' ? MANIFEST_TYPE : BYTES_TYPE, body, digest };
}
