import { readFile } from 'node:fs/promises';
import { CARD_KEYS_PATH, MODES } from '@hopline/agent-card';
import { CardSigner } from '@hopline/agent-card/signing';
import { isLoopback } from '@hopline/endpoint';
import { type Config, ConfigError, type Setting, type Settings } from '@hopline/lifecycle';
import type { IngressCardOptions } from './ingress-card.ts';

const TEXT_CHARS_MAX = 2_048;
const MODES_MAX = 32;
const MEDIA_TYPE = /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+*-]{1,127}(?:;[\w\s=."-]{1,127})?$/;

const web = { type: 'url', optional: true, schemes: ['http', 'https'] } as const;
const modes = { type: 'string', default: MODES.join(','), min: 3, max: TEXT_CHARS_MAX } as const;

/** Settings of the agent card and of the capabilities it declares. */
export const CARD_SETTINGS = {
  HOPLINE_CARD_NAME: { type: 'string', default: 'Hopline', min: 1, max: 128, doc: 'Name on the agent card.' },
  HOPLINE_CARD_DESCRIPTION: {
    type: 'string',
    default: 'Agents behind Hopline: every event is logged, any stream can be resumed.',
    min: 1,
    max: TEXT_CHARS_MAX,
    doc: 'Description on the agent card.',
  },
  HOPLINE_CARD_VERSION: {
    type: 'string',
    optional: true,
    min: 1,
    max: 64,
    doc: 'Version of the service on the agent card, not of A2A. Default: the version of Hopline.',
  },
  HOPLINE_CARD_ORGANIZATION: {
    type: 'string',
    optional: true,
    min: 1,
    max: 256,
    doc: 'Provider of the agent; set it with HOPLINE_CARD_ORGANIZATION_URL.',
  },
  HOPLINE_CARD_ORGANIZATION_URL: { ...web, doc: 'Address of HOPLINE_CARD_ORGANIZATION.' },
  HOPLINE_CARD_DOCUMENTATION_URL: { ...web, doc: 'URL of the documentation.' },
  HOPLINE_CARD_ICON_URL: { ...web, doc: 'URL of the icon.' },
  HOPLINE_CARD_INPUT_MODES: { ...modes, doc: 'Media types that the agents accept, separated by commas.' },
  HOPLINE_CARD_OUTPUT_MODES: { ...modes, doc: 'Media types that the agents return, separated by commas.' },
  HOPLINE_CARD_SKILLS: {
    type: 'enum',
    values: ['public', 'callers'],
    default: 'public',
    doc: 'Who sees the skills of the agents: every reader of the card, or only authenticated callers, on the extended card.',
  },
  HOPLINE_CARD_EXTENDED: {
    type: 'boolean',
    default: true,
    doc: 'Serve an extended card to authenticated callers: every skill, and the agents with their health. Needs authentication.',
  },
  HOPLINE_CARD_KEY_FILE: {
    type: 'string',
    optional: true,
    min: 1,
    max: 4_096,
    doc: 'Private key (JWK or PEM; EC P-256, P-384, P-521, Ed25519, RSA from 2048 bits) that signs the card. Default: not signed.',
  },
  HOPLINE_CARD_KEY_ID: {
    type: 'string',
    optional: true,
    min: 1,
    max: 256,
    doc: '`kid` of that key. Default: that of the JWK, else its RFC 7638 thumbprint.',
  },
  HOPLINE_CARD_JKU: {
    ...web,
    doc: `URL of the public key, as a JWK set; part of the signature. Default: \`${CARD_KEYS_PATH}\`, if HOPLINE_PUBLIC_URL has no path and is https or loopback.`,
  },
  HOPLINE_STREAMING: {
    type: 'boolean',
    default: true,
    doc: 'Declare and serve streaming. false: streaming requests get UnsupportedOperation.',
  },
  HOPLINE_PUSH: {
    type: 'boolean',
    default: false,
    doc: 'Declare push notifications and accept webhooks from clients. Needs a notifier.',
  },
} as const satisfies Record<string, Setting>;

type CardSettings = Settings<typeof CARD_SETTINGS>;
/** The card settings, and the settings of ingress that they depend on. */
type PublicCardSettings = CardSettings & { readonly HOPLINE_PUBLIC_URL?: string | undefined };

/** A config whose `load` also checks that the card settings agree with each other. */
export function withCardChecked<T extends typeof CARD_SETTINGS & Readonly<Record<string, Setting>>>(
  config: Config<T>,
): Config<T> {
  return {
    ...config,
    load: env => {
      const settings = config.load(env);
      const faults = cardFaults(settings);
      if (faults.length > 0) throw new ConfigError(faults);
      return settings;
    },
  };
}

function cardFaults(settings: CardSettings): string[] {
  const faults: string[] = [];
  const { HOPLINE_CARD_ORGANIZATION: organization, HOPLINE_CARD_ORGANIZATION_URL: address } = settings;
  if ((organization === undefined) !== (address === undefined)) {
    faults.push('HOPLINE_CARD_ORGANIZATION and HOPLINE_CARD_ORGANIZATION_URL must be set together');
  }
  for (const name of ['HOPLINE_CARD_KEY_ID', 'HOPLINE_CARD_JKU'] as const) {
    if (settings[name] !== undefined && settings.HOPLINE_CARD_KEY_FILE === undefined) {
      faults.push(`${name} requires HOPLINE_CARD_KEY_FILE`);
    }
  }
  for (const name of ['HOPLINE_CARD_INPUT_MODES', 'HOPLINE_CARD_OUTPUT_MODES'] as const) {
    const types = listOf(settings[name]);
    if (types.length === 0 || types.length > MODES_MAX || !types.every(type => MEDIA_TYPE.test(type))) {
      faults.push(`${name} must be at most ${MODES_MAX} media types, separated by commas`);
    }
  }
  return faults;
}

/**
 * `version`: the version of Hopline. Rejects with one sentence when the key cannot be read or cannot sign. The sentence does not quote the
 * key.
 */
export async function cardFromSettings(settings: PublicCardSettings, version: string): Promise<IngressCardOptions> {
  const organization = settings.HOPLINE_CARD_ORGANIZATION;
  const signer = await signerOf(settings);
  return {
    name: settings.HOPLINE_CARD_NAME,
    description: settings.HOPLINE_CARD_DESCRIPTION,
    version: settings.HOPLINE_CARD_VERSION ?? version,
    inputModes: listOf(settings.HOPLINE_CARD_INPUT_MODES),
    outputModes: listOf(settings.HOPLINE_CARD_OUTPUT_MODES),
    ...(organization !== undefined && { provider: { organization, url: settings.HOPLINE_CARD_ORGANIZATION_URL! } }),
    ...(settings.HOPLINE_CARD_DOCUMENTATION_URL !== undefined && {
      documentationUrl: settings.HOPLINE_CARD_DOCUMENTATION_URL,
    }),
    ...(settings.HOPLINE_CARD_ICON_URL !== undefined && { iconUrl: settings.HOPLINE_CARD_ICON_URL }),
    skills: settings.HOPLINE_CARD_SKILLS,
    extended: settings.HOPLINE_CARD_EXTENDED,
    streaming: settings.HOPLINE_STREAMING,
    push: settings.HOPLINE_PUSH,
    ...(signer !== undefined && { signer }),
  };
}

async function signerOf(settings: PublicCardSettings): Promise<CardSigner | undefined> {
  const path = settings.HOPLINE_CARD_KEY_FILE;
  if (path === undefined) return undefined;
  const key = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new TypeError(`HOPLINE_CARD_KEY_FILE cannot be read: ${error.code}`);
  });
  return CardSigner.open({ key, keyId: settings.HOPLINE_CARD_KEY_ID, jku: settings.HOPLINE_CARD_JKU ?? publicKeysUrl(settings) });
}

/**
 * The default `jku`, if it is certain. It is not certain if the public address has a path (the URL of the root is then unknown) or uses
 * http (keys fetched over http can be forged, RFC 7515 4.1.2).
 */
function publicKeysUrl({ HOPLINE_PUBLIC_URL: publicUrl = '' }: PublicCardSettings): string | undefined {
  const url = URL.parse(publicUrl);
  if (url === null || url.pathname !== '/') return undefined;
  const safe = url.protocol === 'https:' || isLoopback(url.hostname);
  return safe ? new URL(CARD_KEYS_PATH, url.origin).href : undefined;
}

/** Splits a list separated by commas. */
export function listOf(joined: string): string[] {
  const items = joined.split(',').map(item => item.trim());
  return items.filter(item => item !== '');
}
