export type { BackedUpStream } from './backup.ts';
export { hasAgentAccounts } from './capabilities.ts';
export { openJetStreamLog } from './jetstream-log.ts';
export { LAYOUT_AHEAD_MS, LAYOUTS_FORM, layoutSizesOf } from './layouts.ts';
export { BUCKETS, FACTS_STREAM, INPUTS_STREAM, LogNames, WORK_STREAM } from './names.ts';
export type { Credentials, JetStreamLogOptions, LayoutSize, LogEvent, MaxAges, MaxBytes, NatsTls } from './options.ts';
export {
  ACK_WAIT_MS,
  DUPLICATE_WINDOW_MS,
  FACTS_DUPLICATE_WINDOW_MS,
  INPUTS_DUPLICATE_WINDOW_MS,
  LEASES_AGE_MS,
  MAX_AGES_DEFAULT,
  MAX_BYTES_DEFAULT,
  WORK_CONSUMERS_MAX,
} from './options.ts';
export {
  ADMIN,
  AGENT_LIMITS,
  accountOf,
  accounts,
  answerTerms,
  authorization,
  type Password,
  passwordVariable,
  type ServerUser,
  serverUsers,
  userName,
} from './server-configuration.ts';
export {
  addLayoutFromSettings,
  backUpFromSettings,
  checkNats,
  LOG_SETTINGS,
  type LogSettings,
  openFromSettings,
  restoreFromSettings,
} from './settings.ts';
export { WATCHED_SUBJECTS_MAX } from './tail-watch.ts';
export { ANY_AGENT, exchangeOf, inboxOf, type LogUser, type Permissions, permissionsOf, SERVICE_USERS } from './users.ts';
