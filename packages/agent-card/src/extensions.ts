import { A2AError } from '@hopline/a2a';
import type { AgentExtension } from './agent-card.ts';

/**
 * Service parameter of 1.0 and its name in 0.3, in requests and responses ([A2A 1.0] 3.2.6, 4.6). In gRPC they are metadata.
 */
export const EXTENSIONS_HEADER = 'a2a-extensions';
export const LEGACY_EXTENSIONS_HEADER = 'x-a2a-extensions';

/** URIs evaluated per request. */
export const HEADER_EXTENSIONS_MAX = 32;

/** The URIs of a header, separated by commas. */
export function extensionUris(header: string | undefined): string[] {
  if (header === undefined) return [];
  const uris = header.split(',', HEADER_EXTENSIONS_MAX).map(uri => uri.trim());
  return uris.filter(uri => uri !== '');
}

/**
 * The requested extensions that the server offers. They are active for the request, and the response names them. Others are ignored. Throws
 * EXTENSION_SUPPORT_REQUIRED when a required extension is not requested.
 */
export function activeExtensions(requested: readonly string[], offered: readonly AgentExtension[]): string[] {
  const missing = offered.find(({ uri, required }) => required && !requested.includes(uri));
  if (missing !== undefined)
    throw new A2AError('EXTENSION_SUPPORT_REQUIRED', { detail: `request ${missing.uri} in ${EXTENSIONS_HEADER}` });
  return offered.map(({ uri }) => uri).filter(uri => requested.includes(uri));
}
