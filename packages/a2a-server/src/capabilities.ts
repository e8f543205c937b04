import { A2AError, type DialectName, type Operation } from '@hopline/a2a';
import { activeExtensions, EXTENSIONS_HEADER, extensionUris, LEGACY_EXTENSIONS_HEADER } from '@hopline/agent-card';
import type { A2AServer } from './a2a-server.ts';
import { firstOf, type RequestHeaders } from './authenticate.ts';

/** Throws UNSUPPORTED_OPERATION for a stream unless the card declares streaming ([A2A 1.0] 3.3.4). */
export function assertOffered({ streaming }: A2AServer, operation: Operation): void {
  if (streaming || (operation !== 'stream' && operation !== 'subscribe')) return;
  throw new A2AError('UNSUPPORTED_OPERATION', { detail: 'the agent card declares no streaming' });
}

/**
 * URIs of the extensions that are active for a request; the legacy form has none.
 * Throws EXTENSION_SUPPORT_REQUIRED when the client does not request an extension that the card requires.
 */
export function requestedExtensions({ extensions }: A2AServer, dialect: DialectName, headers: RequestHeaders): readonly string[] {
  if (extensions.length === 0 || dialect === 'legacy') return [];
  const header = firstOf(headers, EXTENSIONS_HEADER) ?? firstOf(headers, LEGACY_EXTENSIONS_HEADER);
  return activeExtensions(extensionUris(header), extensions);
}
