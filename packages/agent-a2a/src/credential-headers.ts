import { HEADER_VALUE } from '@hopline/outbound-http';

/** How an entry of the agents file names the headers of its agent. Credentials are values of environment variables, never part of the file. */
export type EntryHeaders = {
  auth?: { bearerEnv: string } | { apiKeyEnv: string; header?: string };
  headers?: Readonly<Record<string, string>>;
  /** Headers whose values are environment variables. */
  headersEnv?: Readonly<Record<string, string>>;
};

/** Default header of an API key. */
const API_KEY_HEADER = 'x-api-key';

/** The header that `auth` sets. */
export function authHeader(auth: NonNullable<EntryHeaders['auth']>): string {
  return 'bearerEnv' in auth ? 'authorization' : (auth.header ?? API_KEY_HEADER).toLowerCase();
}

/**
 * The headers of an entry, with the values of its variables. `unset`: whether a variable that is not set throws, or its header is left out.
 * Errors are one sentence that names the field, but no value and no variable.
 */
export function credentialHeaders(
  { auth, headers, headersEnv = {} }: EntryHeaders,
  secret: (variable: string) => string | undefined,
  unset: 'throw' | 'omit' = 'throw',
): Record<string, string> {
  const all: Record<string, string> = { ...headers };
  const set = (header: string, variable: string, { field, before = '' }: { field: string; before?: string }) => {
    const value = secret(variable) ?? '';
    if (value === '' && unset === 'omit') return;
    if (value === '') throw new Error(`the variable that ${field} names is not set`);
    if (!HEADER_VALUE.test(value))
      throw new Error(`the variable that ${field} names contains characters that a header cannot have`);
    all[header] = `${before}${value}`;
  };
  for (const [header, variable] of Object.entries(headersEnv)) set(header, variable, { field: `headersEnv.${header}` });
  if (auth === undefined) return all;
  const header = authHeader(auth);
  if ('bearerEnv' in auth) set(header, auth.bearerEnv, { field: 'auth.bearerEnv', before: 'Bearer ' });
  else set(header, auth.apiKeyEnv, { field: 'auth.apiKeyEnv' });
  return all;
}
