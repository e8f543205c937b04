export { type Chunk, FLUSH_REASONS, type FlushReason, type Token } from './chunk.ts';
export { type Coalescer, close, closeAll, createCoalescer, flush, offer, tick, wakeAtMs } from './coalescer.ts';
export { CREDIT_EVENTS, REFILL_SHARE } from './hold-policy.ts';
export { type Optimum, offlineOptimum } from './offline-optimum.ts';
export {
  CHUNK_BYTES_MIN,
  COALESCED_LANES_MAX,
  type CoalesceSettings,
  checkSettings,
  DEFAULT_SETTINGS,
  EVENT_COST_MS_MAX,
  HOLD_MS_MAX,
} from './settings.ts';
export { pieceEnd } from './text-cut.ts';
export { TextHold } from './text-hold.ts';
