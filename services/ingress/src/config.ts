import { LIMITS, QUOTA_SETTINGS } from '@hopline/a2a-server';
import { ENDPOINT_SETTINGS, withEndpointChecked } from '@hopline/endpoint';
import { type Config, defineServiceConfig, type Setting } from '@hopline/lifecycle';
import { DEFAULT_AGENT_SETTINGS } from '@hopline/log';
import { SECRETS_SETTINGS } from '@hopline/log/webhook-secrets';
import { LOG_SETTINGS } from '@hopline/log-jetstream';
import { PROFILE_SETTINGS } from '@hopline/profiles';
import { WEBHOOK_SETTINGS } from '@hopline/webhook-guard';
import { CARD_SETTINGS, withCardChecked } from './card-settings.ts';

/** Settings that only ingress has. */
const INGRESS_SETTINGS = {
  HOPLINE_PROFILE: {
    type: 'string',
    default: 'caipe',
    min: 1,
    max: 32,
    doc: 'How events of agents are presented to clients: `caipe`, `transparent`, `aion`, `chat`, or the profile of HOPLINE_PROFILE_MODULE.',
  },
  ...PROFILE_SETTINGS,
  ...DEFAULT_AGENT_SETTINGS,
  HOPLINE_PUBLIC_URL: {
    type: 'url',
    optional: true,
    schemes: ['http', 'https'],
    doc: 'Public address of this server, for the agent card. Default: 127.0.0.1 and the port.',
  },
  HOPLINE_CONSOLE_URL: {
    type: 'url',
    optional: true,
    schemes: ['http', 'https'],
    doc: 'Address of the console, linked from the page that browsers get at `/`. Default: no link.',
  },
  HOPLINE_GRPC_PORT: {
    type: 'integer',
    optional: true,
    min: 0,
    max: 65_535,
    doc: 'Port for gRPC of A2A 1.0 and 0.3, at HOPLINE_HOST; 0 chooses a free one. Default: no gRPC, and none on the card.',
  },
  HOPLINE_GRPC_PUBLIC_URL: {
    type: 'string',
    optional: true,
    min: 3,
    max: 512,
    doc: 'Public address of gRPC, `host:port`, for the agent card. Default: 127.0.0.1 and the port.',
  },
  ...CARD_SETTINGS,
  ...WEBHOOK_SETTINGS,
  ...SECRETS_SETTINGS,
  HOPLINE_BODY_BYTES_MAX: {
    type: 'integer',
    default: LIMITS.bodyBytesMax,
    min: 1_024,
    max: 8 * 1024 * 1024,
    unit: 'bytes',
    doc: 'Largest request body.',
  },
  HOPLINE_STREAMS_MAX: {
    type: 'integer',
    default: LIMITS.streamsMax,
    min: 1,
    max: 100_000,
    doc: 'Streams and waiting sends open at once; further ones get 503 with Retry-After.',
  },
  ...QUOTA_SETTINGS,
  HOPLINE_VIEWER_BUFFER_BYTES_MAX: {
    type: 'integer',
    default: LIMITS.viewerBufferBytesMax,
    min: 131_072,
    max: 64 * 1024 * 1024,
    unit: 'bytes',
    doc: 'Bytes buffered for one slow client before it is disconnected; it resumes with its cursor.',
  },
  HOPLINE_RECENT_EVENTS_BYTES_MAX: {
    type: 'integer',
    default: LIMITS.ringsBytesMax,
    min: 1024 * 1024,
    max: 16 * 1024 * 1024 * 1024,
    unit: 'bytes',
    doc: 'Bytes of the newest events of all followed tasks in memory, which serve clients and resumes, at most 256 KiB for a task; encoded for clients they take two to three times as much. Beyond it, events of the tasks that have been idle longest are read from the log.',
  },
  HOPLINE_FOLLOWED_TASKS_BYTES_MAX: {
    type: 'integer',
    default: LIMITS.viewsBytesMax,
    min: 1024 * 1024,
    max: 16 * 1024 * 1024 * 1024,
    unit: 'bytes',
    doc: 'Bytes of all followed tasks in memory, with all answers of their agents, for snapshots and responses; text that streams in small chunks counts three to four times. Beyond it, the tasks that have been idle longest are read from the log when a client needs them.',
  },
  HOPLINE_SSE_HEARTBEAT_MS: {
    type: 'integer',
    default: LIMITS.heartbeatMs,
    min: 1_000,
    // Within one and a half intervals each stream has its comment, and clients wait for 60 s.
    max: 30_000,
    unit: 'ms',
    doc: 'Interval of comments on idle streams, which keep proxies from closing them, and clients from taking them for dead: those of Hopline wait for 60 s.',
  },
} as const satisfies Record<string, Setting>;

const declared = defineServiceConfig({ ...LOG_SETTINGS, ...ENDPOINT_SETTINGS, ...INGRESS_SETTINGS });

/** Settings of ingress. */
export const ingressConfig: Config<(typeof declared)['settings']> = withCardChecked(withEndpointChecked(declared));
