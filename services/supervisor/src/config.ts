import { MODEL_LIMITS, MODEL_MS_MAX, OPENAI_BASE_URL_DEFAULT } from '@hopline/chat-model/limits';
import { type Config, ConfigError, defineServiceConfig } from '@hopline/lifecycle';
import { LOG_SETTINGS } from '@hopline/log-jetstream';

const declared = defineServiceConfig({
  ...LOG_SETTINGS,
  HOPLINE_SUPERVISOR_NAME: {
    type: 'string',
    default: 'Platform Engineer',
    min: 1,
    max: 64,
    doc: 'What the supervisor is called in the descriptions of artifacts.',
  },
  HOPLINE_SLOTS: { type: 'integer', default: 512, min: 1, max: 10_000, doc: 'Tasks conducted at the same time by one process.' },
  HOPLINE_PLANNER: {
    type: 'enum',
    values: ['skills', 'model'],
    default: 'skills',
    doc: 'Who chooses the agents: the skills on their cards, or a language model, which conducts the whole turn.',
  },
  HOPLINE_MODEL: { type: 'string', optional: true, min: 1, max: 256, doc: 'Name of the model that plans.' },
  OPENAI_BASE_URL: {
    type: 'url',
    default: OPENAI_BASE_URL_DEFAULT,
    schemes: ['http', 'https'],
    doc: 'OpenAI-compatible address of that model.',
  },
  OPENAI_API_KEY: { type: 'string', optional: true, min: 1, max: 4_096, secret: true, doc: 'Key for that address.' },
  HOPLINE_MODEL_STEPS_MAX: { type: 'integer', default: 16, min: 1, max: 64, doc: 'Times the model is asked for one message.' },
  HOPLINE_MODEL_SUMMARY: {
    type: 'boolean',
    default: false,
    doc: "The model concludes in its own words; without it the agents' forwarded text is the answer. `metadata.summary` of a message decides for that message.",
  },
  HOPLINE_MODEL_FIRST_TOKEN_MS: {
    type: 'integer',
    default: MODEL_LIMITS.firstTokenMsMax,
    min: 10,
    max: MODEL_MS_MAX,
    unit: 'ms',
    doc: 'Until the first token of a step.',
  },
  HOPLINE_MODEL_SILENCE_MS: {
    type: 'integer',
    default: MODEL_LIMITS.silenceMsMax,
    min: 10,
    max: MODEL_MS_MAX,
    unit: 'ms',
    doc: 'Between two tokens.',
  },
  HOPLINE_AGENT_GONE_MS: {
    type: 'integer',
    default: 30_000,
    min: 1_000,
    max: 600_000,
    unit: 'ms',
    doc: 'A call that the model made is given up when its agent has not announced itself for this long; 10 s of silence are added.',
  },
});

type SupervisorSettings = (typeof declared)['settings'];

/** Settings of the supervisor. */
export const supervisorConfig: Config<SupervisorSettings> = {
  ...declared,
  load: env => {
    const settings = declared.load(env);
    if (settings.HOPLINE_PLANNER === 'model' && settings.HOPLINE_MODEL === undefined) {
      throw new ConfigError(['HOPLINE_PLANNER=model needs HOPLINE_MODEL, the name of the model']);
    }
    return settings;
  },
};
