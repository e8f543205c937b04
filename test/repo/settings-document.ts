import { ingressConfig } from '../../services/ingress/src/config.ts';
import { notifierConfig } from '../../services/notifier/src/config.ts';
import { relayConfig } from '../../services/relay/src/config.ts';
import { subAgentConfig } from '../../services/sub-agent/src/config.ts';
import { supervisorConfig } from '../../services/supervisor/src/config.ts';

const INTRO = `# Settings

Every service reads its settings from the environment once, at start, and reports all invalid ones in one message. This file is generated
from each service's \`config.ts\` by \`node test/repo/write-settings.ts\`; a test fails if it is out of date.

The standard \`OTEL_*\` variables apply; without \`OTEL_EXPORTER_OTLP_ENDPOINT\` no traces are exported. \`npm start\` has options of its own:
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
