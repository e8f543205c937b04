import { AUTH_SETTINGS, TLS_SETTINGS, tlsFaults } from '@hopline/endpoint';
import { type Config, ConfigError, defineServiceConfig, type Setting } from '@hopline/lifecycle';

const link = { type: 'url', optional: true, schemes: ['http', 'https'] } as const;

/** Settings that only the console has. */
const CONSOLE_SETTINGS = {
  HOPLINE_CONSOLE_INGRESS_URL: {
    type: 'url',
    default: 'http://127.0.0.1:8000/',
    schemes: ['http', 'https'],
    doc: 'Address of ingress, which answers every request of the page with the credentials of its user.',
  },
  HOPLINE_CONSOLE_INGRESS_CA_FILE: {
    type: 'string',
    optional: true,
    min: 1,
    max: 4_096,
    doc: 'Certificate authorities for the certificate of ingress (PEM), read at each connection. Default: those that Node trusts.',
  },
  HOPLINE_CONSOLE_WRITES: {
    type: 'boolean',
    default: false,
    doc: 'Let users of the console send messages and cancel tasks. Otherwise it only reads.',
  },
  HOPLINE_CONSOLE_HOME: {
    type: 'string',
    optional: true,
    min: 1,
    max: 4_096,
    doc: 'Folder with the run.json of a cluster on this machine, as `npm start` sets it: the cluster page then shows its processes, rates and lag, which cover the tasks of all tenants.',
  },
  HOPLINE_CONSOLE_AGENTS_FILE: {
    type: 'string',
    optional: true,
    min: 1,
    max: 4_096,
    doc: 'Agents file of the cluster, as `npm start` sets it: a task then shows the tasks below it, those of agents that are clusters of Hopline. The console asks the addresses in this file and no others, without credentials.',
  },
  HOPLINE_CONSOLE_JAEGER_URL: {
    ...link,
    doc: 'Address of Jaeger; a task then links to its trace. Not set: the Jaeger of `npm run observe`, if it runs beside `npm start`.',
  },
  HOPLINE_CONSOLE_GRAFANA_URL: {
    ...link,
    doc: 'Address of Grafana; the cluster page then links to it. Not set: the Grafana of `npm run observe`, if it runs beside `npm start`.',
  },
  HOPLINE_PUBLIC_URL: {
    ...link,
    doc: 'Public address of the console. Requests that name another host, and pages of another origin, are refused.',
  },
  HOPLINE_AUTH_API_KEY_HEADER: AUTH_SETTINGS.HOPLINE_AUTH_API_KEY_HEADER,
  HOPLINE_AUTH_NONE_ON_PUBLIC: AUTH_SETTINGS.HOPLINE_AUTH_NONE_ON_PUBLIC,
} as const satisfies Record<string, Setting>;

const declared = defineServiceConfig({ ...TLS_SETTINGS, ...CONSOLE_SETTINGS });

/** Settings of the console. */
export const consoleConfig: Config<(typeof declared)['settings']> = {
  ...declared,
  load: env => {
    const settings = declared.load(env);
    const faults = tlsFaults(settings);
    // Otherwise the authorities would look as if they protected the requests.
    if (settings.HOPLINE_CONSOLE_INGRESS_CA_FILE !== undefined && !settings.HOPLINE_CONSOLE_INGRESS_URL.startsWith('https:'))
      faults.push('HOPLINE_CONSOLE_INGRESS_CA_FILE needs an https address in HOPLINE_CONSOLE_INGRESS_URL');
    if (faults.length > 0) throw new ConfigError(faults);
    return settings;
  },
};
