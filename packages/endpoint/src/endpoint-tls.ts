import { createSecureContext, type SecureVersion, type TlsOptions } from 'node:tls';
import { WatchedFile } from '@hopline/lifecycle';
import type { Logger } from '@hopline/telemetry';

/** Interval at which certificate files are checked for changes. */
const CERTIFICATES_RECHECK_MS = 1_000;
/** Time limit of a TLS handshake; Node would hold the connection for two minutes. */
export const TLS_HANDSHAKE_MS_MAX = 5_000;

type EndpointTlsOptions = {
  /** Paths of PEM files. */
  cert: string;
  key: string;
  clientCa?: string;
  versionMin: SecureVersion;
  logger: Logger;
  /** Overrides CERTIFICATES_RECHECK_MS. */
  recheckMs?: number;
};

/** The part of an HTTPS (or HTTP/2, gRPC) server that `keepFresh` needs. */
type SecureServer = { setSecureContext(options: TlsOptions): void; once(event: 'close', listener: () => void): unknown };

export type EndpointTls = {
  /** For `https.createServer`, `http2.createSecureServer`. */
  readonly options: TlsOptions;
  /** Applies changed files to the server until it closes. Open connections stay as they are. */
  keepFresh(server: SecureServer): void;
};

type Pem = { cert: string; key: string; ca?: string };

/** Rejects with an Error of one sentence when the files cannot be used, or do not match. */
export async function openEndpointTls(options: EndpointTlsOptions): Promise<EndpointTls> {
  const { versionMin, logger, recheckMs = CERTIFICATES_RECHECK_MS } = options;
  const read = await openFiles(options);
  let inForce = await read();
  const fault = faultOf(inForce);
  if (fault !== undefined) throw new Error(`HOPLINE_TLS_CERT_FILE and its key cannot be used: ${fault}`);
  const contextOf = (pem: Pem): TlsOptions => ({ ...pem, minVersion: versionMin });
  const mutual = inForce.ca === undefined ? {} : { requestCert: true, rejectUnauthorized: true };
  return {
    options: { ...contextOf(inForce), ...mutual, handshakeTimeout: TLS_HANDSHAKE_MS_MAX },
    keepFresh: server => {
      let seen = inForce;
      const check = async () => {
        const fresh = await read();
        if (isSame(fresh, seen)) return;
        seen = fresh;
        const fault = faultOf(fresh);
        // Certificate and key are two files, and do not match until both have been written.
        if (fault !== undefined)
          return logger.warn({ reason: fault }, 'certificate and key do not match; the previous ones stay in use');
        inForce = fresh;
        server.setSecureContext(contextOf(fresh));
        logger.info('certificate reloaded');
      };
      const timer = setInterval(() => void check(), recheckMs).unref();
      server.once('close', () => clearInterval(timer));
    },
  };
}

async function openFiles({ cert, key, clientCa, logger, recheckMs }: EndpointTlsOptions): Promise<() => Promise<Pem>> {
  const open = (path: string, setting: string) => {
    const onFault = (reason: string) =>
      logger.error({ reason }, `${setting} changed and cannot be used; the previous content stays in use`);
    return WatchedFile.open({ path, parse: text => text, onFault, ...(recheckMs !== undefined && { recheckMs }) }).catch(
      error => {
        throw new Error(`${setting}: ${error instanceof Error ? error.message : 'cannot be used'}`);
      },
    );
  };
  const certFile = await open(cert, 'HOPLINE_TLS_CERT_FILE');
  const keyFile = await open(key, 'HOPLINE_TLS_KEY_FILE');
  const caFile = clientCa === undefined ? undefined : await open(clientCa, 'HOPLINE_TLS_CLIENT_CA_FILE');
  return async () => ({
    cert: await certFile.current(),
    key: await keyFile.current(),
    ...(caFile && { ca: await caFile.current() }),
  });
}

/** OpenSSL's error code, never file content. */
function faultOf(pem: Pem): string | undefined {
  try {
    createSecureContext(pem);
    return undefined;
  } catch (error) {
    return (error as { code?: string }).code ?? 'unknown';
  }
}

const isSame = (one: Pem, other: Pem) => one.cert === other.cert && one.key === other.key && one.ca === other.ca;
