import { UsageError } from './usage-error.ts';

/** Headers with the credentials of the environment. Throws a UsageError that does not contain them. */
export function credentialsOf({
  HOPLINE_TOKEN: token,
  HOPLINE_API_KEY: key,
  HOPLINE_AUTH_API_KEY_HEADER: header,
}: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return {
    ...(token && { authorization: `Bearer ${assertHeaderValue('HOPLINE_TOKEN', token)}` }),
    ...(key && { [assertHeaderName(header || 'x-api-key')]: assertHeaderValue('HOPLINE_API_KEY', key) }),
  };
}

function assertHeaderName(name: string): string {
  if (/^[\w.-]+$/.test(name)) return name;
  throw new UsageError('HOPLINE_AUTH_API_KEY_HEADER must be the name of a header');
}

function assertHeaderValue(name: string, value: string): string {
  if (/^[\x21-\x7e]+$/.test(value)) return value;
  throw new UsageError(`${name} contains characters that are not allowed in a header`);
}
