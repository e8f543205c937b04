import { MODEL_LIMITS, MODEL_MS_MAX, modelSettings } from '@hopline/chat-model/limits';
import { type Config, ConfigError, defineServiceConfig } from '@hopline/lifecycle';
import { AGENT_REMEMBERED_MS, COALESCE_SETTINGS, DEFAULT_AGENT_SETTINGS, SLOTS_DEFAULT, SLOTS_DOC } from '@hopline/log';
import { LOG_SETTINGS } from '@hopline/log-jetstream';
import { PROFILE_SETTINGS } from '@hopline/profiles';
import { AGENT_WAIT_MS, FIRST_AGENT_WAIT_MS } from './at-least-one-agent.ts';

const declared = defineServiceConfig({
  ...LOG_SETTINGS,
  ...COALESCE_SETTINGS,
  ...PROFILE_SETTINGS,
  ...DEFAULT_AGENT_SETTINGS,
  HOPLINE_SUPERVISOR_NAME: {
    type: 'string',
    default: 'Platform Engineer',
    min: 1,
    max: 64,
    doc: 'Name of the supervisor in the descriptions of artifacts.',
  },
  HOPLINE_SLOTS: {
    type: 'integer',
    default: SLOTS_DEFAULT,
    min: 1,
    max: 10_000,
    doc: `Concurrent tasks of one process. ${SLOTS_DOC}`,
  },
  HOPLINE_PLANNER: {
    type: 'enum',
    values: ['skills', 'model'],
    default: 'skills',
    doc: 'Agents are chosen by the skills on their cards, or by a language model, which conducts the whole turn.',
  },
  HOPLINE_MODEL: { type: 'string', optional: true, min: 1, max: 256, doc: 'Name of the planning model.' },
  ...modelSettings({ url: 'OpenAI-compatible address of the planning model.', key: 'API key for OPENAI_BASE_URL.' }),
  HOPLINE_MODEL_STEPS_MAX: { type: 'integer', default: 16, min: 1, max: 64, doc: 'Requests to the model for one message.' },
  HOPLINE_MODEL_SUMMARY: {
    type: 'boolean',
    default: false,
    doc: "The model ends with its own summary; otherwise the agents' forwarded text is the answer. `metadata.summary` of a message takes precedence.",
  },
  HOPLINE_MODEL_FIRST_TOKEN_MS: {
    type: 'integer',
    default: MODEL_LIMITS.firstTokenMsMax,
    min: 10,
    max: MODEL_MS_MAX,
    unit: 'ms',
    doc: 'Longest wait for the first token of a step.',
  },
  HOPLINE_MODEL_SILENCE_MS: {
    type: 'integer',
    default: MODEL_LIMITS.silenceMsMax,
    min: 10,
    max: MODEL_MS_MAX,
    unit: 'ms',
    doc: 'Longest wait between two tokens.',
  },
  HOPLINE_AGENT_WAIT_MS: {
    type: 'integer',
    default: AGENT_WAIT_MS,
    min: 1_000,
    max: AGENT_REMEMBERED_MS,
    unit: 'ms',
    doc: `An agent is chosen until its last heartbeat is this old, even after an orderly stop, as in a restart or a reload; its call then waits HOPLINE_AGENT_GONE_MS for it. How long a new task waits while no agent is known, if the supervisor started within this time; otherwise ${FIRST_AGENT_WAIT_MS / 1_000} s.`,
  },
  HOPLINE_AGENT_GONE_MS: {
    type: 'integer',
    default: 30_000,
    min: 1_000,
    max: 600_000,
    unit: 'ms',
    doc: 'A call is abandoned when its agent has been out of the registry for this long, while the log stored what was written. The registry drops an agent after 10 s without heartbeat.',
  },
});

type SupervisorSettings = (typeof declared)['settings'];

/** Settings of the supervisor. */
export const supervisorConfig: Config<SupervisorSettings> = {
  ...declared,
  load: env => {
    const settings = declared.load(env);
    if (settings.HOPLINE_PLANNER === 'model' && settings.HOPLINE_MODEL === undefined) {
      throw new ConfigError(['HOPLINE_PLANNER=model requires HOPLINE_MODEL, the name of the model']);
    }
    return settings;
  },
};
