import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { A2AOptions, AgentTls } from '@hopline/agent-a2a';
import { credentialHeaders } from '@hopline/agent-a2a/credential-headers';
import type { A2AEntry } from './agent-entry.ts';

type A2AContext = {
  /** Name of the agent. */
  name: string;
  /** Base of relative paths in `tls`. */
  folder: string;
  /** Reads an environment variable. */
  secret: (variable: string) => string | undefined;
};

/** The fields that configure the agent itself. */
type AgentFields = Omit<A2AEntry, 'name' | 'skills' | 'retries' | 'forwardText'>;

/** Resolves the credentials of an entry. Rejects with one sentence that names agent and field, but no value, file or variable. */
export async function a2aOptions(entry: AgentFields, { name, folder, secret }: A2AContext): Promise<A2AOptions> {
  const { adapter: _adapter, auth, headers, headersEnv, tls, ...rest } = entry;
  const label = `agent "${name}"`;
  const named = { ...(auth && { auth }), ...(headers && { headers }), ...(headersEnv && { headersEnv }) };
  return {
    ...rest,
    headers: labeled(label, () => credentialHeaders(named, secret)),
    ...(tls && { tls: await readTls(tls, { folder, label }) }),
  };
}

function labeled<T>(label: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new Error(`${label}: ${(error as Error).message}`);
  }
}

type TlsFiles = NonNullable<A2AEntry['tls']>;

async function readTls(files: TlsFiles, { folder, label }: { folder: string; label: string }): Promise<AgentTls> {
  const read = async (field: keyof TlsFiles) => {
    const path = files[field];
    if (path === undefined) return undefined;
    return await readFile(resolve(folder, path), 'utf8').catch(() => {
      throw new Error(`${label}: the file that tls.${field} names cannot be read`);
    });
  };
  const [ca, cert, key] = [await read('caFile'), await read('certFile'), await read('keyFile')];
  // Node ignores an invalid certificate authority, so every connection would fail later.
  check(
    () => ca === undefined || new X509Certificate(ca),
    `${label}: the file that tls.caFile names contains no PEM certificate`,
  );
  const certificate = { ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) };
  check(
    () => createSecureContext(certificate),
    `${label}: the files that tls.certFile and tls.keyFile name cannot be used together`,
  );
  return { ...certificate, ...(ca !== undefined && { ca }) };
}

function check(use: () => unknown, sentence: string): void {
  try {
    use();
  } catch {
    throw new Error(sentence);
  }
}
