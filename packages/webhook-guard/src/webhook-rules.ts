import { AllowList } from './allow-list.ts';
import { isPublicAddress } from './public-address.ts';

/** Where webhooks may be. */
export type WebhookRules = {
  /** Plain http is allowed beside https. */
  readonly http: boolean;
  /** What is allowed although it is not public. */
  readonly allow: AllowList;
};

/** Settings of every service that takes or calls webhooks: doors refuse at once what the notifier would never call. */
export const WEBHOOK_SETTINGS = {
  HOPLINE_WEBHOOK_ALLOW: {
    type: 'string',
    optional: true,
    min: 1,
    max: 16_384,
    doc: 'Webhooks that are allowed although they are not on the public internet, joined by commas: host names, `*.` and a domain, addresses, CIDR blocks. Without it only public addresses are called.',
  },
  HOPLINE_WEBHOOK_HTTP: {
    type: 'boolean',
    default: false,
    doc: 'Webhooks may be plain http: tokens and content are then readable on the way.',
  },
} as const;

/** Throws TypeError on an allow-list that cannot be read. */
export function webhookRules(settings: {
  readonly HOPLINE_WEBHOOK_ALLOW: string | undefined;
  readonly HOPLINE_WEBHOOK_HTTP: boolean;
}): WebhookRules {
  return { http: settings.HOPLINE_WEBHOOK_HTTP, allow: new AllowList(settings.HOPLINE_WEBHOOK_ALLOW) };
}

/** True when a socket may be opened to `address` for a webhook whose URL says `host`. */
export function permits(rules: WebhookRules, host: string, address: string): boolean {
  return isPublicAddress(address) || rules.allow.hasAddress(address) || rules.allow.hasName(host);
}
