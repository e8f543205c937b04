import { Metadata } from '@grpc/grpc-js';
import type { A2AError } from '@hopline/a2a';
import { errorType } from '@hopline/a2a/dialect-0.3-proto';
import { type RequestHeaders, retryAfterMs } from '@hopline/a2a-server';
import { EXTENSIONS_HEADER, LEGACY_EXTENSIONS_HEADER } from '@hopline/agent-card';
import type { Procedure } from './services.ts';
import { type GrpcStatus, grpcStatus } from './status.ts';

const DETAILS = 'grpc-status-details-bin';

/** Metadata of a call as headers, without binary entries. */
export function headersOf(metadata: Metadata): RequestHeaders {
  const names = Object.keys(metadata.getMap());
  return Object.fromEntries(names.map(name => [name, metadata.get(name).filter(value => typeof value === 'string')]));
}

export function metadataOf(entries: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(entries)) metadata.set(name, value);
  return metadata;
}

/** Response headers that name the active extensions. */
export function extensionHeaders({ dialect }: Procedure, uris: readonly string[]): Record<string, string> {
  if (uris.length === 0) return {};
  return { [dialect.name === '1.0' ? EXTENSIONS_HEADER : LEGACY_EXTENSIONS_HEADER]: uris.join(', ') };
}

/** The status of a failed call. `entries`: further trailers. */
export function failure(
  { dialect }: Procedure,
  error: A2AError,
  entries: Readonly<Record<string, string>> = {},
  retryMs = retryAfterMs(error),
): Pick<GrpcStatus, 'code'> & { details: string; metadata: Metadata } {
  const { code, message, details } = grpcStatus(error, retryMs);
  const metadata = metadataOf(entries);
  metadata.set(DETAILS, Buffer.from(details));
  const type = dialect.name === '1.0' ? undefined : errorType(error.code);
  return { code, details: type === undefined ? message : `${type}: ${message}`, metadata };
}
