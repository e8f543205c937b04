import { defineServiceConfig } from '@hopline/lifecycle';
import { LOG_SETTINGS } from '@hopline/log-jetstream';

/** Settings of the supervisor. */
export const supervisorConfig = defineServiceConfig({
  ...LOG_SETTINGS,
  HOPLINE_SUPERVISOR_NAME: {
    type: 'string',
    default: 'Platform Engineer',
    min: 1,
    max: 64,
    doc: 'What the supervisor is called in the descriptions of artifacts.',
  },
  HOPLINE_SLOTS: { type: 'integer', default: 512, min: 1, max: 10_000, doc: 'Tasks conducted at the same time by one process.' },
});
