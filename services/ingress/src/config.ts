import { LIMITS } from '@hopline/a2a-server';
import { ENDPOINT_SETTINGS, withEndpointChecked } from '@hopline/endpoint';
import { type Config, defineServiceConfig, type Setting } from '@hopline/lifecycle';
import { LOG_SETTINGS } from '@hopline/log-jetstream';
import { PROFILE_SETTINGS } from '@hopline/profiles';
import { WEBHOOK_SETTINGS } from '@hopline/webhook-guard';
import { CARD_SETTINGS, withCardChecked } from './card-settings.ts';

/** Those that ingress alone has. */
const INGRESS_SETTINGS = {
  HOPLINE_PROFILE: {
    type: 'string',
    default: 'caipe',
    min: 1,
    max: 32,
    doc: 'How the work of agents shows to clients: `caipe`, `transparent`, `aion`, or the profile of HOPLINE_PROFILE_MODULE.',
  },
  ...PROFILE_SETTINGS,
  HOPLINE_PUBLIC_URL: {
    type: 'url',
    optional: true,
    schemes: ['http', 'https'],
    doc: 'Address under which clients reach this door, for the agent card. Without it: 127.0.0.1 and the port.',
  },
  HOPLINE_GRPC_PORT: {
    type: 'integer',
    optional: true,
    min: 0,
    max: 65_535,
    doc: 'Port for gRPC of 1.0 and 0.3, at HOPLINE_HOST. 0 takes a free one. Without it there is no gRPC, and the card offers none.',
  },
  HOPLINE_GRPC_PUBLIC_URL: {
    type: 'string',
    optional: true,
    min: 3,
    max: 512,
    doc: 'Address under which clients reach gRPC, `host:port`, for the agent card. Without it: 127.0.0.1 and the port.',
  },
  ...CARD_SETTINGS,
  ...WEBHOOK_SETTINGS,
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
    doc: 'Streams and waiting sends open at once; one more gets 503 and Retry-After.',
  },
  HOPLINE_VIEWER_BUFFER_BYTES_MAX: {
    type: 'integer',
    default: LIMITS.viewerBufferBytesMax,
    min: 131_072,
    max: 64 * 1024 * 1024,
    unit: 'bytes',
    doc: 'Bytes that may wait for one slow client before it is cut; it resumes by its cursor.',
  },
  HOPLINE_SSE_HEARTBEAT_MS: {
    type: 'integer',
    default: LIMITS.heartbeatMs,
    min: 1_000,
    max: 60_000,
    unit: 'ms',
    doc: 'A comment is sent on a quiet stream this often, so that proxies keep it open.',
  },
} as const satisfies Record<string, Setting>;

const declared = defineServiceConfig({ ...LOG_SETTINGS, ...ENDPOINT_SETTINGS, ...INGRESS_SETTINGS });

/** Settings of ingress. */
export const ingressConfig: Config<(typeof declared)['settings']> = withCardChecked(withEndpointChecked(declared));
