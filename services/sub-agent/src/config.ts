import { QUOTA_SETTINGS } from '@hopline/a2a-server';
import { modelSettings } from '@hopline/chat-model/limits';
import { ENDPOINT_SETTINGS, withEndpointChecked } from '@hopline/endpoint';
import { type Config, ConfigError, defineServiceConfig } from '@hopline/lifecycle';
import { COALESCE_SETTINGS, SLOTS_DEFAULT, SLOTS_DOC } from '@hopline/log';
import { LOG_SETTINGS } from '@hopline/log-jetstream';
import { parseAgentEntry } from './agent-entry.ts';

const settings = defineServiceConfig({
  ...LOG_SETTINGS,
  ...COALESCE_SETTINGS,
  ...ENDPOINT_SETTINGS,
  ...QUOTA_SETTINGS,
  HOPLINE_PORT: {
    type: 'integer',
    default: 8001,
    min: 0,
    max: 65_535,
    doc: "Port of the agent's own A2A endpoint; 0 chooses a free one.",
  },
  HOPLINE_AGENT: {
    type: 'string',
    min: 2,
    max: 65_536,
    // Its headers and environment variables may contain credentials.
    secret: true,
    doc: 'The agent: one entry of the agents file, as JSON.',
  },
  HOPLINE_AGENTS_DIR: { type: 'string', default: '.', min: 1, max: 4_096, doc: 'Base of relative paths in the entry.' },
  HOPLINE_SLOTS: {
    type: 'integer',
    default: SLOTS_DEFAULT,
    min: 1,
    max: 10_000,
    doc: `Concurrent turns of the agent. ${SLOTS_DOC}`,
  },
  HOPLINE_DRAIN_TURNS_MS: {
    type: 'integer',
    default: 10_000,
    min: 0,
    max: 600_000,
    unit: 'ms',
    doc: 'Time for running turns to end after SIGTERM; then they are requeued. Less than HOPLINE_DRAIN_MS_MAX.',
  },
  HOPLINE_AGENT_ERRORS_FD: {
    type: 'integer',
    optional: true,
    min: 2,
    max: 255,
    doc: "File descriptor, open at start, for the message and stack of errors that the agent throws: its author's terminal, never a log, because they may contain content. `hopline agent` and the local launcher set it. Default: they are not written.",
  },
  HOPLINE_CODE_SOCKET: {
    type: 'string',
    optional: true,
    min: 1,
    max: 100,
    doc: 'Unix socket at which the container of the code listens (role `code` of the image), which then has the variables that the entry names. The chart sets it. Default: the code runs in child processes.',
  },
  HOPLINE_CODE_USER: {
    type: 'string',
    default: 'auto',
    min: 4,
    max: 32,
    doc: 'User of the processes in which the code of the agent runs: `UID:GID`; `same` for that of the sub-agent, whose login the code can then read; `auto`: a user for each agent where the sub-agent runs as root and that user can read the code, else `same`, which is logged.',
  },
  HOPLINE_PUBLIC_URL: {
    type: 'url',
    optional: true,
    schemes: ['http', 'https'],
    doc: 'URL of the endpoint for clients, in the agent card and in webhooks of remote agents. Default: the address it listens on.',
  },
  ...modelSettings({
    url: 'URL of the model for entries of adapter `model` without `baseUrl`.',
    key: 'API key for that URL. An entry with another URL names its own variable in `apiKeyEnv`.',
  }),
});

type SubAgentSettings = (typeof settings)['settings'];

const declared: Config<SubAgentSettings> = withEndpointChecked(settings);

/** Settings of a sub-agent. The agent's entry is parsed with them, so that an invalid one ends the process at start. */
export const subAgentConfig: Config<SubAgentSettings> = {
  ...declared,
  load: env => {
    const settings = declared.load(env);
    try {
      parseAgentEntry(settings.HOPLINE_AGENT);
    } catch (error) {
      throw new ConfigError([error instanceof Error ? error.message : 'HOPLINE_AGENT is invalid']);
    }
    return settings;
  },
};
