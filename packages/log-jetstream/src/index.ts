export { openJetStreamLog } from './jetstream-log.ts';
export { BUCKETS, FACTS_STREAM, INPUTS_STREAM, WORK_STREAM } from './names.ts';
export type { Credentials, JetStreamLogOptions, LogEvent, MaxAges, MaxBytes, NatsTls } from './options.ts';
export { ACK_WAIT_MS, DUPLICATE_WINDOW_MS, MAX_AGES_DEFAULT, MAX_BYTES_DEFAULT } from './options.ts';
export { checkNats, LOG_SETTINGS, type LogSettings, openFromSettings } from './settings.ts';
