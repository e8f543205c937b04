import { tlsFromSettings } from '@hopline/endpoint';
import { fromSettings, runService } from '@hopline/lifecycle';
import { agentTasks } from '@hopline/local-cluster';
import { readAppFiles } from './app-files.ts';
import { consoleConfig } from './config.ts';
import { createConsole } from './console.ts';
import { LauncherLink } from './launcher-link.ts';

// Made at once, because the launcher's first message may arrive while the service starts.
const launcher = new LauncherLink(process);
// The channel must not keep a drained process alive.
process.channel?.unref();

await runService({
  name: 'console',
  env: process.env,
  config: consoleConfig,
  probes: 'mounted',
  publicAddresses: settings => [settings.HOPLINE_PUBLIC_URL],
  start: async ({ settings, version, log: logger, probes }) => {
    const { HOPLINE_CONSOLE_AGENTS_FILE: agentsFile } = settings;
    const { files, tls, auditBelow } = await fromSettings(async () => ({
      files: readAppFiles(),
      // Credentials of callers are only for ingress, and the console has no credentials of its own.
      auditBelow: agentsFile === undefined ? undefined : agentTasks(agentsFile, undefined),
      tls: await tlsFromSettings(settings, { logger }),
    }));
    const server = createConsole({
      ingressUrl: settings.HOPLINE_CONSOLE_INGRESS_URL,
      ingressCaFile: settings.HOPLINE_CONSOLE_INGRESS_CA_FILE,
      files,
      auditBelow,
      writes: settings.HOPLINE_CONSOLE_WRITES,
      apiKeyHeader: settings.HOPLINE_AUTH_API_KEY_HEADER,
      host: settings.HOPLINE_HOST,
      allowsNoneOnPublic: settings.HOPLINE_AUTH_NONE_ON_PUBLIC,
      publicUrl: settings.HOPLINE_PUBLIC_URL,
      home: settings.HOPLINE_CONSOLE_HOME,
      links: { jaeger: settings.HOPLINE_CONSOLE_JAEGER_URL, grafana: settings.HOPLINE_CONSOLE_GRAFANA_URL },
      launcher,
      version,
      tls,
      probes,
      logger,
    });
    const url = await server.listen(settings.HOPLINE_PORT);
    logger.info({ url }, 'listening');
    return {
      // The page shows that ingress does not answer, and continues when it answers again.
      checks: [{ name: 'ingress', check: signal => server.check(signal), optional: true }],
      close: () => server.close(),
    };
  },
});
