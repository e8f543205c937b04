export { ALLOW_ENTRIES_MAX, AllowList } from './allow-list.ts';
export type { Resolve } from './guarded-lookup.ts';
export { ForbiddenAddress, guardedLookup } from './guarded-lookup.ts';
export { isPublicAddress } from './public-address.ts';
export type { WebhookRules } from './webhook-rules.ts';
export { permits, WEBHOOK_SETTINGS, webhookRules } from './webhook-rules.ts';
export { hostOf, WEBHOOK_URL_CHARS_MAX, webhookUrlProblem } from './webhook-url.ts';
