import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type Bundle, bundleFromJSON, bundleToJSON, toDSSEBundle, toMessageSignatureBundle } from '@sigstore/bundle';
import { dsse } from '@sigstore/core';
import { toSignedEntity, Verifier } from '@sigstore/verify';

/** Names in the folder of a dry run. */
const KEY_FILE = 'dry-run.pub';
const PROVENANCE_FILE = 'provenance.sigstore.json';
const STATEMENT_TYPE = 'application/vnd.in-toto+json';

/** The commit that was built, and whether the working tree had other changes. */
export type Source = { commit: string; changed: boolean };
type Subject = { name: string; digest: { sha256: string } };
type Statement = { subject: Subject[]; predicate: unknown };

/**
 * Signs files with a key that exists only during this call. Writes a signature next to each file, and one provenance (SLSA) for all of
 * them, as Sigstore bundles. A release has the same bundles, but with a certificate for the identity of the workflow, which only a run of
 * the workflow gets. Returns the paths.
 */
export function signForTrial(outFolder: string, paths: readonly string[], source: Source): string[] {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const keyHint = hintOf(publicKey);
  const write = (path: string, bundle: Bundle) => {
    writeFileSync(path, `${JSON.stringify(bundleToJSON(bundle))}\n`);
    return path;
  };
  const signatures = paths.map(path => {
    const content = readFileSync(path);
    const signature = sign('sha256', content, privateKey);
    return write(`${path}.sigstore.json`, toMessageSignatureBundle({ digest: sha256(content), signature, keyHint }));
  });
  const artifact = Buffer.from(JSON.stringify(statementOf(outFolder, paths, source)));
  const signature = sign('sha256', dsse.preAuthEncoding(STATEMENT_TYPE, artifact), privateKey);
  const provenance = toDSSEBundle({ artifact, artifactType: STATEMENT_TYPE, signature, keyHint });
  writeFileSync(join(outFolder, KEY_FILE), publicKey.export({ type: 'spki', format: 'pem' }));
  return [...signatures, write(join(outFolder, PROVENANCE_FILE), provenance), join(outFolder, KEY_FILE)];
}

function statementOf(outFolder: string, paths: readonly string[], { commit, changed }: Source): object {
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: paths.map(path => subjectOf(outFolder, path)),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:hopline:dry-run',
        externalParameters: { changed },
        resolvedDependencies: [{ uri: 'urn:hopline:repository', digest: { gitCommit: commit } }],
      },
      runDetails: { builder: { id: 'urn:hopline:this-machine' } },
    },
  };
}

/** Verifies the signatures of these files, and that the provenance names each with its content, by the rules of Sigstore. Throws for the first fault. */
export function verifyTrial(outFolder: string, paths: readonly string[]): void {
  const publicKey = createPublicKey(readFileSync(join(outFolder, KEY_FILE)));
  const hint = hintOf(publicKey);
  const verify = (path: string, artifact?: Buffer) => {
    const bundle = bundleFromJSON(JSON.parse(readFileSync(path, 'utf8')));
    verifier(publicKey, hint).verify(toSignedEntity(bundle, artifact));
    return bundle;
  };
  for (const path of paths) verify(`${path}.sigstore.json`, readFileSync(path));
  const { content } = verify(join(outFolder, PROVENANCE_FILE));
  if (content.$case !== 'dsseEnvelope') throw new Error(`${PROVENANCE_FILE} has no statement`);
  const { subject } = JSON.parse(content.dsseEnvelope.payload.toString()) as Statement;
  const named = new Map(subject.map(({ name, digest }) => [name, digest.sha256]));
  for (const path of paths) {
    const { name, digest } = subjectOf(outFolder, path);
    if (named.get(name) !== digest.sha256) throw new Error(`${PROVENANCE_FILE} does not name ${name} with its content`);
  }
}

/** The key of a run has no certificate, and no log entry that proves when it signed. */
function verifier(publicKey: KeyObject, hint: string): Verifier {
  const key = (given: string) => {
    if (given !== hint) throw new Error('another key has signed');
    return { publicKey, validFor: () => true };
  };
  const trusted = { certificateAuthorities: [], timestampAuthorities: [], tlogs: [], ctlogs: [], publicKey: key };
  return new Verifier(trusted, { tlogThreshold: 0, ctlogThreshold: 0, timestampThreshold: 0 });
}

function subjectOf(outFolder: string, path: string): Subject {
  return { name: relative(outFolder, path), digest: { sha256: sha256(readFileSync(path)).toString('hex') } };
}

/** The name by which cosign refers to a key. */
function hintOf(publicKey: KeyObject): string {
  return sha256(publicKey.export({ type: 'spki', format: 'der' })).toString('base64');
}

function sha256(content: Buffer): Buffer {
  return createHash('sha256').update(content).digest();
}
