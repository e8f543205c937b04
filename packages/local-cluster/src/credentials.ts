import { EnvironmentError } from './environment-error.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Headers with the credentials of the environment. Throws an EnvironmentError that does not contain them. */
export function credentialsOf(environment: Environment): Record<string, string> {
  const { HOPLINE_TOKEN: token, HOPLINE_API_KEY: key } = environment;
  return {
    ...(token && { authorization: `Bearer ${assertHeaderValue('HOPLINE_TOKEN', token)}` }),
    ...(key && { [assertHeaderName(apiKeyHeader(environment))]: assertHeaderValue('HOPLINE_API_KEY', key) }),
  };
}

/** The header in which an API key is sent. */
export function apiKeyHeader({ HOPLINE_AUTH_API_KEY_HEADER: name }: Environment): string {
  return name || 'x-api-key';
}

function assertHeaderName(name: string): string {
  if (/^[\w.-]+$/.test(name)) return name;
  throw new EnvironmentError('HOPLINE_AUTH_API_KEY_HEADER must be the name of a header');
}

function assertHeaderValue(name: string, value: string): string {
  if (/^[\x21-\x7e]+$/.test(value)) return value;
  throw new EnvironmentError(`${name} contains characters that are not allowed in a header`);
}
