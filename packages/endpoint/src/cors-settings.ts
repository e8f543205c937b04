import type { Setting, Settings } from '@hopline/lifecycle';

/** Maximum number of origins in HOPLINE_CORS_ORIGINS. */
export const CORS_ORIGINS_MAX = 64;

/** Settings for web pages that access the server from a browser. */
export const CORS_SETTINGS = {
  HOPLINE_CORS_ORIGINS: {
    type: 'string',
    optional: true,
    min: 1,
    max: 8_192,
    doc: 'Origins of web pages with access from a browser (CORS), e.g. `https://app.example`, separated by commas; `*`: every page, without cookies. Default: none.',
  },
} as const satisfies Readonly<Record<string, Setting>>;

/** The option `cors` of packages/a2a-http. */
export type CorsRules = { origins: readonly string[] | '*'; requestHeaders: readonly string[] };

type CorsSettings = Settings<typeof CORS_SETTINGS>;

export function corsFaults({ HOPLINE_CORS_ORIGINS: joined }: CorsSettings): string[] {
  if (joined === undefined || joined === '*') return [];
  const origins = originsOf(joined);
  if (origins.length > CORS_ORIGINS_MAX) return [`HOPLINE_CORS_ORIGINS has more than ${CORS_ORIGINS_MAX} origins`];
  if (origins.length > 0 && origins.every(isOrigin)) return [];
  return ['HOPLINE_CORS_ORIGINS must contain origins such as https://app.example, in lower case and without a path, or only *'];
}

/** Undefined: pages of other origins have no access. */
export function corsFromSettings(
  settings: CorsSettings & { readonly HOPLINE_AUTH_API_KEY_HEADER: string },
): CorsRules | undefined {
  const { HOPLINE_CORS_ORIGINS: joined, HOPLINE_AUTH_API_KEY_HEADER: header } = settings;
  if (joined === undefined) return undefined;
  return { origins: joined === '*' ? '*' : originsOf(joined), requestHeaders: [header] };
}

/**
 * Compared literally with the Origin header, so it must be written as browsers write it. It cannot be a pattern, or `null`, which every
 * sandboxed frame sends.
 */
function isOrigin(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === text && !text.includes('*');
}

function originsOf(joined: string): string[] {
  return joined.split(',').map(origin => origin.trim());
}
