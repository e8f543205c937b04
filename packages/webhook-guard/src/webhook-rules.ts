import { AllowList } from './allow-list.ts';
import { isPublicAddress } from './public-address.ts';

/** The addresses that webhooks may use. */
export type WebhookRules = {
  /** Allows http in addition to https. */
  readonly http: boolean;
  /** Names and addresses that are allowed although they are not public. */
  readonly allow: AllowList;
};

/** Settings of every service that accepts or calls webhooks: the server rejects a URL that the notifier would never call. */
export const WEBHOOK_SETTINGS = {
  HOPLINE_WEBHOOK_ALLOW: {
    type: 'string',
    optional: true,
    min: 1,
    max: 16_384,
    doc: 'Webhook hosts that are allowed although they are not on the public internet, separated by commas: host names, `*.` domains, addresses, CIDR blocks. Without it only public addresses are called.',
  },
  HOPLINE_WEBHOOK_HTTP: {
    type: 'boolean',
    default: false,
    doc: 'Allows http webhooks. Their tokens and content are sent in clear text.',
  },
} as const;

/** Throws TypeError on an invalid allow-list. */
export function webhookRules(settings: {
  readonly HOPLINE_WEBHOOK_ALLOW: string | undefined;
  readonly HOPLINE_WEBHOOK_HTTP: boolean;
}): WebhookRules {
  return { http: settings.HOPLINE_WEBHOOK_HTTP, allow: new AllowList(settings.HOPLINE_WEBHOOK_ALLOW) };
}

/** True when a socket may connect to `address` for a webhook with this URL host. */
export function permits(rules: WebhookRules, host: string, address: string): boolean {
  return isPublicAddress(address) || rules.allow.hasAddress(address) || rules.allow.hasName(host);
}
