import { chartPermissions, permissionsDocument, serverConfiguration } from '../../infra/nats/configuration.ts';
import { DASHBOARDS } from '../../infra/observe/dashboards/dashboards.ts';
import { grafanaJson } from '../../infra/observe/dashboards/grafana-json.ts';
import { agentsSchemaDocument } from './agents-schema-document.ts';
import { chartSchemaDocument } from './chart-schema-document.ts';
import { cliDocument } from './cli-document.ts';
import { dependenciesDocument } from './dependencies-document.ts';
import { hopsDocument } from './hops-document.ts';
import { metricsDocument } from './metrics-document.ts';
import { openApiPage } from './openapi-document.ts';
import { serviceVariablesDocument, settingNamesDocument, settingsDocument } from './settings-document.ts';
import { chartReadme, valuesDocument } from './values-document.ts';

/** Reference documents that are generated from the sources; `node test/repo/write-reference.ts` writes them. */
export const REFERENCE: Record<string, () => string | Promise<string>> = {
  'docs/reference/settings.md': settingsDocument,
  'docs/reference/values.md': valuesDocument,
  'docs/reference/metrics.md': metricsDocument,
  'docs/reference/hops.md': hopsDocument,
  'docs/reference/dependencies.md': dependenciesDocument,
  'docs/reference/cli.md': cliDocument,
  'docs/reference/openapi.md': openApiPage,
  'docs/reference/agents.schema.json': agentsSchemaDocument,
  'docs/reference/nats-permissions.md': permissionsDocument,
  'infra/nats/hopline.conf': () => serverConfiguration(),
  'infra/compose/nats.conf': () => serverConfiguration({ agents: ['guide'] }),
  'infra/helm/hopline/files/nats-permissions.json': chartPermissions,
  'infra/local/launcher/service-variables.json': serviceVariablesDocument,
  'packages/lifecycle/src/setting-names.json': settingNamesDocument,
  'infra/helm/hopline/README.md': () => chartReadme('hopline'),
  'infra/helm/hopline-agent/README.md': () => chartReadme('hopline-agent'),
  'infra/helm/hopline/values.schema.json': () => chartSchemaDocument('hopline'),
  'infra/helm/hopline-agent/values.schema.json': () => chartSchemaDocument('hopline-agent'),
  ...Object.fromEntries(
    DASHBOARDS.map(one => [
      `infra/helm/hopline/dashboards/${one.uid}.json`,
      () => `${JSON.stringify(grafanaJson(one), null, 2)}\n`,
    ]),
  ),
};
