import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { A2AOptions, AgentTls } from '@hopline/agent-a2a';
import { authHeader } from './a2a-entry.ts';
import type { A2AEntry } from './agent-entry.ts';

type A2AContext = {
  /** Name of the agent. */
  name: string;
  /** Base of relative paths in `tls`. */
  folder: string;
  /** Reads an environment variable. */
  secret: (variable: string) => string | undefined;
};

/** Visible ASCII with inner blanks, which every HTTP client and server accepts (RFC 9110, 5.5). */
const HEADER_VALUE = /^[!-~]([\t -~]*[!-~])?$/;

/** The fields that configure the agent itself. */
type AgentFields = Omit<A2AEntry, 'name' | 'skills' | 'retries' | 'forwardText'>;

/** Resolves the credentials of an entry. Rejects with one sentence that names agent and field, but no value, file or variable. */
export async function a2aOptions(entry: AgentFields, { name, folder, secret }: A2AContext): Promise<A2AOptions> {
  const { adapter: _adapter, auth, headers, headersEnv = {}, tls, ...rest } = entry;
  const label = `agent "${name}"`;
  const credential = (variable: string, field: string) => {
    const value = secret(variable);
    if (value === undefined || value === '') throw new Error(`${label}: the variable that ${field} names is not set`);
    if (!HEADER_VALUE.test(value))
      throw new Error(`${label}: the variable that ${field} names contains characters that a header cannot have`);
    return value;
  };
  const allHeaders: Record<string, string> = { ...headers };
  for (const [header, variable] of Object.entries(headersEnv)) allHeaders[header] = credential(variable, `headersEnv.${header}`);
  if (auth !== undefined) {
    const isBearer = 'bearerEnv' in auth;
    const value = isBearer ? credential(auth.bearerEnv, 'auth.bearerEnv') : credential(auth.apiKeyEnv, 'auth.apiKeyEnv');
    allHeaders[authHeader(auth)] = isBearer ? `Bearer ${value}` : value;
  }
  return { ...rest, headers: allHeaders, ...(tls && { tls: await readTls(tls, { folder, label }) }) };
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
  // Node ignores an invalid certificate authority, and every connection would fail later.
  check(
    () => ca === undefined || new X509Certificate(ca),
    `${label}: the file that tls.caFile names contains no PEM certificate`,
  );
  const own = { ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) };
  check(() => createSecureContext(own), `${label}: the files that tls.certFile and tls.keyFile name cannot be used together`);
  return { ...own, ...(ca !== undefined && { ca }) };
}

function check(use: () => unknown, sentence: string): void {
  try {
    use();
  } catch {
    throw new Error(sentence);
  }
}
