import { createServer } from 'node:http';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { listen } from '../../kit/listen.ts';

type Claims = { sub?: string; tenant?: string; aud?: string; exp?: number };

/** An issuer of bearer tokens that serves its keys, as an identity provider does. */
export type Issuer = {
  /** Settings of all services of a cluster. */
  env: Record<string, string>;
  /** A token, valid for ten minutes by default. `exp`: seconds since the epoch. */
  token(claims?: Claims): Promise<string>;
  close(): void;
};

const AUDIENCE = 'hopline';
const TOKEN_S = 600;

/** `name`: its name in tokens, by default the address of its keys. */
export async function startIssuer(name?: string): Promise<Issuer> {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const keys = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256', use: 'sig' }] });
  const server = createServer((_request, response) => response.setHeader('content-type', 'application/json').end(keys));
  const url = await listen(server);
  const iss = name ?? url;
  return {
    env: { HOPLINE_AUTH_ISSUER: iss, HOPLINE_AUTH_AUDIENCE: AUDIENCE, HOPLINE_AUTH_JWKS_URL: `${url}/jwks` },
    token: (claims = {}) =>
      new SignJWT({ iss, aud: AUDIENCE, sub: 'ann', exp: Math.floor(Date.now() / 1000) + TOKEN_S, ...claims })
        .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
        .sign(privateKey),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
