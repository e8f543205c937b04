import { type CoalesceSettings, DEFAULT_SETTINGS, EVENT_COST_MS_MAX, HOLD_MS_MAX } from '@hopline/coalesce';

/**
 * How long text is held, for the services that write it and for the relay. Producers hold their own text, so the settings of supervisor and
 * sub-agents decide. The relay's settings apply only to text that no producer has held.
 */
export const COALESCE_SETTINGS = {
  HOPLINE_EVENT_COST_MS: {
    type: 'number',
    default: DEFAULT_SETTINGS.eventCostMs,
    min: 0,
    max: EVENT_COST_MS_MAX,
    unit: 'token-ms',
    doc: 'Cost of one client event in delayed tokens: larger values make fewer, larger chunks. 0 makes every token a chunk. Relay, supervisor and sub-agents need the same value.',
  },
  HOPLINE_HOLD_MS_MAX: {
    type: 'integer',
    default: DEFAULT_SETTINGS.holdMsMax,
    min: 1,
    max: HOLD_MS_MAX,
    unit: 'ms',
    doc: 'Longest hold of a token. Relay, supervisor and sub-agents need the same value.',
  },
  HOPLINE_CHUNK_BYTES_MAX: {
    type: 'integer',
    default: DEFAULT_SETTINGS.chunkBytesMax,
    min: 64,
    max: 262_144,
    unit: 'bytes',
    doc: 'Largest chunk. Relay, supervisor and sub-agents need the same value.',
  },
} as const;

type CoalesceVariables = { readonly [Name in keyof typeof COALESCE_SETTINGS]: number };

/** The values of COALESCE_SETTINGS in the form that the coalescer takes. */
export function coalesceSettingsOf(settings: CoalesceVariables): CoalesceSettings {
  return {
    eventCostMs: settings.HOPLINE_EVENT_COST_MS,
    holdMsMax: settings.HOPLINE_HOLD_MS_MAX,
    chunkBytesMax: settings.HOPLINE_CHUNK_BYTES_MAX,
  };
}
