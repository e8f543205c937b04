import { A2AError } from '@hopline/a2a';
import type { AgentExtension } from './agent-card.ts';

/** Service parameter of 1.0 and its name in 0.3; header of a request and of its answer ([A2A 1.0] 3.2.6, 4.6). gRPC has them as metadata. */
export const EXTENSIONS_HEADER = 'a2a-extensions';
export const LEGACY_EXTENSIONS_HEADER = 'x-a2a-extensions';

/** URIs of one request that are looked at. */
export const EXTENSIONS_MAX = 32;

/** The URIs of a header: joined by commas, with blanks around them. */
export function extensionUris(header: string | undefined): string[] {
  if (header === undefined) return [];
  const uris = header.split(',', EXTENSIONS_MAX).map(uri => uri.trim());
  return uris.filter(uri => uri !== '');
}

/**
 * Those of the asked extensions that the door offers: they are active for the request, and named in its answer. What is not offered is ignored.
 * Throws EXTENSION_SUPPORT_REQUIRED when the door requires one that was not asked for.
 */
export function activeExtensions(asked: readonly string[], offered: readonly AgentExtension[]): string[] {
  const missing = offered.find(({ uri, required }) => required && !asked.includes(uri));
  if (missing !== undefined) throw new A2AError('EXTENSION_SUPPORT_REQUIRED', { detail: missing.uri });
  return offered.map(({ uri }) => uri).filter(uri => asked.includes(uri));
}
