import { ingressConfig } from '../../services/ingress/src/config.ts';
import { notifierConfig } from '../../services/notifier/src/config.ts';
import { relayConfig } from '../../services/relay/src/config.ts';
import { subAgentConfig } from '../../services/sub-agent/src/config.ts';
import { supervisorConfig } from '../../services/supervisor/src/config.ts';

const INTRO = `# Settings

Every service reads its settings from the environment, once, and refuses to start with all that is wrong in one message. Made from the
services' \`config.ts\`; \`node test/repo/write-settings.ts\` writes it anew, and a test compares.

The standard \`OTEL_*\` names work as usual; without \`OTEL_EXPORTER_OTLP_ENDPOINT\` no trace is made. \`npm start\` has a few of its own:
\`npm start -- --help\`.
`;

/** The text of infra/SETTINGS.md. */
export function settingsDocument(): string {
  const services = {
    ingress: ingressConfig,
    supervisor: supervisorConfig,
    'sub-agent': subAgentConfig,
    relay: relayConfig,
    notifier: notifierConfig,
  };
  const sections = Object.entries(services).map(([name, config]) => `## ${name}\n\n${config.table().trim()}\n`);
  return [INTRO, ...sections].join('\n');
}
