import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { signForTrial, verifyTrial } from './trial-signatures.ts';

const SOURCE = { commit: 'f00d', changed: false };

/** A folder with two files, which are signed. */
function signed(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-signatures-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'charts'));
  const paths = [join(folder, 'hopline-1.2.3.tgz'), join(folder, 'charts/hopline-1.2.3.oci.tar')];
  for (const path of paths) writeFileSync(path, `content of ${path}`);
  const written = signForTrial(folder, paths, SOURCE);
  return { folder, paths, written };
}

test('each file has a signature, and one provenance names all files and the commit', t => {
  const { folder, paths, written } = signed(t);
  verifyTrial(folder, paths);
  assert.deepEqual(written, [
    ...paths.map(path => `${path}.sigstore.json`),
    join(folder, 'provenance.sigstore.json'),
    join(folder, 'dry-run.pub'),
  ]);
  const { mediaType, dsseEnvelope } = JSON.parse(readFileSync(join(folder, 'provenance.sigstore.json'), 'utf8'));
  assert.equal(mediaType, 'application/vnd.dev.sigstore.bundle.v0.3+json');
  const { subject, predicateType, predicate } = JSON.parse(Buffer.from(dsseEnvelope.payload, 'base64').toString());
  assert.deepEqual(
    subject.map(({ name }: { name: string }) => name),
    ['hopline-1.2.3.tgz', 'charts/hopline-1.2.3.oci.tar'],
  );
  assert.equal(predicateType, 'https://slsa.dev/provenance/v1');
  assert.deepEqual(predicate.buildDefinition.resolvedDependencies[0].digest, { gitCommit: 'f00d' });
  assert.match(readFileSync(join(folder, 'dry-run.pub'), 'utf8'), /^-----BEGIN PUBLIC KEY-----\n/);
});

test('a file that changed after it was signed is refused', t => {
  const { folder, paths } = signed(t);
  writeFileSync(paths[1]!, 'other content');
  assert.throws(() => verifyTrial(folder, paths), /signature verification failed/);
});

test('a signature of another key, or of another file, is refused', t => {
  const [one, other] = [signed(t), signed(t)];
  copyFileSync(`${other.paths[0]!}.sigstore.json`, `${one.paths[0]!}.sigstore.json`);
  assert.throws(() => verifyTrial(one.folder, one.paths), /another key has signed/);
  copyFileSync(`${one.paths[1]!}.sigstore.json`, `${one.paths[0]!}.sigstore.json`);
  assert.throws(() => verifyTrial(one.folder, one.paths), /signature verification failed/);
});

test('a provenance that was changed is refused', t => {
  const { folder, paths } = signed(t);
  const path = join(folder, 'provenance.sigstore.json');
  const bundle = JSON.parse(readFileSync(path, 'utf8'));
  const statement = Buffer.from(bundle.dsseEnvelope.payload, 'base64').toString();
  const changed = { ...bundle.dsseEnvelope, payload: Buffer.from(statement.replace('f00d', 'beef')).toString('base64') };
  writeFileSync(path, JSON.stringify({ ...bundle, dsseEnvelope: changed }));
  assert.throws(() => verifyTrial(folder, paths), /signature verification failed/);
});

test('a signed file that the provenance does not name is refused', t => {
  const { folder, paths } = signed(t);
  const added = join(folder, 'copy.tgz');
  for (const end of ['', '.sigstore.json']) copyFileSync(paths[0]! + end, added + end);
  assert.throws(() => verifyTrial(folder, [...paths, added]), /provenance\.sigstore\.json does not name copy\.tgz/);
});
