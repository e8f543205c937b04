import { type Config, ConfigError, type ServiceSettings, type Settings } from '@hopline/lifecycle';
import { AUTH_SETTINGS, authFaults } from './auth-settings.ts';
import { CORS_SETTINGS, corsFaults } from './cors-settings.ts';
import { TLS_SETTINGS, tlsFaults } from './tls-settings.ts';

/**
 * Settings of a server endpoint, for `defineServiceConfig`. Wrap the config in `withEndpointChecked` to check them together.
 */
export const ENDPOINT_SETTINGS = { ...AUTH_SETTINGS, ...TLS_SETTINGS, ...CORS_SETTINGS };

type EndpointSettings = Pick<ServiceSettings, 'HOPLINE_HOST'> & typeof ENDPOINT_SETTINGS;

/**
 * A config whose `load` also throws ConfigError for contradictory settings and for public access without
 * authentication.
 */
export function withEndpointChecked<T extends EndpointSettings>(config: Config<T>): Config<T> {
  return {
    ...config,
    load: env => {
      const settings = config.load(env);
      const endpoint = settings as unknown as Settings<EndpointSettings>;
      const faults = [...authFaults(endpoint, endpoint.HOPLINE_HOST), ...tlsFaults(endpoint), ...corsFaults(endpoint)];
      if (faults.length > 0) throw new ConfigError(faults);
      return settings;
    },
  };
}
