import { isDeepStrictEqual } from 'node:util';
import { defineConfig, type Setting } from '../../packages/lifecycle/src/index.ts';
import { consoleConfig } from '../../services/console/src/config.ts';
import { ingressConfig } from '../../services/ingress/src/config.ts';
import { notifierConfig } from '../../services/notifier/src/config.ts';
import { relayConfig } from '../../services/relay/src/config.ts';
import { subAgentConfig } from '../../services/sub-agent/src/config.ts';
import { supervisorConfig } from '../../services/supervisor/src/config.ts';

const INTRO = `# Settings

Generated from the services' \`config.ts\` by \`node test/repo/write-reference.ts\`. Do not edit by hand.

A service reads its settings from the environment once, at start. A wrong setting stops it with exit code 78 and one message that names every fault.
An empty value counts as not set. Settings that several services declare alike are listed once, under the names of those services.

Tracing uses the standard \`OTEL_*\` variables: without \`OTEL_EXPORTER_OTLP_ENDPOINT\` no trace is recorded or exported.
\`npm start -- --help\` lists the settings of the local launcher.
`;

export type ServiceSettings = Readonly<Record<string, Setting>>;

export const SERVICES: Record<string, ServiceSettings> = {
  ingress: ingressConfig.settings,
  supervisor: supervisorConfig.settings,
  'sub-agent': subAgentConfig.settings,
  relay: relayConfig.settings,
  notifier: notifierConfig.settings,
  console: consoleConfig.settings,
};

const EVERY_SERVICE = 'Every service';

/** The heading of a declaration: the services that declare the setting identically. */
function headingOf(setting: string, declaration: Setting): string {
  const declaring = Object.entries(SERVICES).filter(([, settings]) => setting in settings);
  const same = declaring.filter(([, settings]) => isDeepStrictEqual(settings[setting], declaration)).map(([service]) => service);
  // A common setting with another default in one service is listed for all services, and again for that one.
  const isCommon = declaring.length === Object.keys(SERVICES).length && same.length > 1;
  return isCommon ? EVERY_SERVICE : joined(same);
}

function joined(services: string[]): string {
  return services.length < 2 ? services.join('') : `${services.slice(0, -1).join(', ')} and ${services.at(-1)}`;
}

/** The text of infra/local/launcher/service-variables.json: the settings of each service, which the launcher passes on. */
export function serviceVariablesDocument(): string {
  const names = Object.entries(SERVICES).map(([service, settings]) => [service, Object.keys(settings).sort()]);
  return `${JSON.stringify(Object.fromEntries(names), null, 2)}\n`;
}

/** The text of packages/lifecycle/src/setting-names.json: every setting of a service that begins with HOPLINE_. */
export function settingNamesDocument(): string {
  const names = new Set(Object.values(SERVICES).flatMap(settings => Object.keys(settings)));
  return `${JSON.stringify([...names].filter(name => name.startsWith('HOPLINE_')).sort(), null, 2)}\n`;
}

/** The text of docs/reference/settings.md. */
export function settingsDocument(): string {
  const sections = new Map<string, Record<string, Setting>>([[EVERY_SERVICE, {}]]);
  for (const service of Object.keys(SERVICES)) sections.set(service, {});
  for (const settings of Object.values(SERVICES)) {
    for (const [name, declaration] of Object.entries<Setting>(settings)) {
      const heading = headingOf(name, declaration);
      sections.set(heading, { ...sections.get(heading), [name]: declaration });
    }
  }
  const ordered = [...sections].filter(([, settings]) => Object.keys(settings).length > 0);
  const shared = ordered.filter(([heading]) => !(heading in SERVICES));
  const ofServices = ordered.filter(([heading]) => heading in SERVICES);
  const parts = [...shared, ...ofServices].map(
    ([heading, settings]) => `## ${heading}\n\n${defineConfig(settings).table().trim()}\n`,
  );
  return [INTRO, ...parts].join('\n');
}
