import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { A2AOptions, AgentTls } from '@hopline/agent-a2a';
import { authHeader } from './a2a-entry.ts';
import type { A2AEntry } from './agent-entry.ts';

type A2AAround = {
  /** Of the agent. */
  name: string;
  /** Relative paths of `tls` begin here. */
  folder: string;
  /** Value of an environment variable. */
  secret: (variable: string) => string | undefined;
};

/** Visible ASCII, and blanks within: what every HTTP client and server lets through (RFC 9110, 5.5). */
const HEADER_VALUE = /^[!-~]([\t -~]*[!-~])?$/;

/** Without what serves the agent and does not make it. */
type Own = Omit<A2AEntry, 'name' | 'skills' | 'retries' | 'forwardText'>;

/** The entry with the credentials it names. Rejects with one sentence that names the agent and the field, and no value: a file's, a variable's or its name. */
export async function a2aOptions(entry: Own, { name, folder, secret }: A2AAround): Promise<A2AOptions> {
  const { adapter: _adapter, auth, headers, headersEnv = {}, tls, ...rest } = entry;
  const who = `agent "${name}"`;
  const credential = (variable: string, field: string) => {
    const value = secret(variable);
    if (value === undefined || value === '') throw new Error(`${who}: the variable that ${field} names is not set`);
    if (!HEADER_VALUE.test(value)) throw new Error(`${who}: the variable that ${field} names holds what no header can`);
    return value;
  };
  const all: Record<string, string> = { ...headers };
  for (const [header, variable] of Object.entries(headersEnv)) all[header] = credential(variable, `headersEnv.${header}`);
  if (auth !== undefined) {
    const bearer = 'bearerEnv' in auth;
    const value = bearer ? credential(auth.bearerEnv, 'auth.bearerEnv') : credential(auth.apiKeyEnv, 'auth.apiKeyEnv');
    all[authHeader(auth)] = bearer ? `Bearer ${value}` : value;
  }
  return { ...rest, headers: all, ...(tls && { tls: await readTls(tls, { folder, who }) }) };
}

type TlsFiles = NonNullable<A2AEntry['tls']>;

async function readTls(files: TlsFiles, { folder, who }: { folder: string; who: string }): Promise<AgentTls> {
  const read = async (field: keyof TlsFiles) => {
    const path = files[field];
    if (path === undefined) return undefined;
    return await readFile(resolve(folder, path), 'utf8').catch(() => {
      throw new Error(`${who}: the file that tls.${field} names cannot be read`);
    });
  };
  const [ca, cert, key] = [await read('caFile'), await read('certFile'), await read('keyFile')];
  // Node passes over an authority that is none, and every connection fails later.
  check(() => ca === undefined || new X509Certificate(ca), `${who}: the file that tls.caFile names holds no certificate in PEM`);
  const own = { ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) };
  check(() => createSecureContext(own), `${who}: the files that tls.certFile and tls.keyFile name cannot be used together`);
  return { ...own, ...(ca !== undefined && { ca }) };
}

function check(use: () => unknown, sentence: string): void {
  try {
    use();
  } catch {
    throw new Error(sentence);
  }
}
