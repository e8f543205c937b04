import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';
import { bits, boolean, implicit, integer, objectId, octets, sequence, set, tagged, utcTime, utf8 } from './der.ts';

/** Certificates for one test run. Node can parse and verify X.509, and sign, but it cannot encode it. */

export const DAY_MS = 86_400_000;
const ECDSA_WITH_SHA256 = sequence(objectId('1.2.840.10045.4.3.2'));
const BASIC_CONSTRAINTS = '2.5.29.19';
const KEY_USAGE = '2.5.29.15';
const ALT_NAME = '2.5.29.17';
const EXTENDED_KEY_USAGE = '2.5.29.37';
const SERVER_AUTH = objectId('1.3.6.1.5.5.7.3.1');
const CLIENT_AUTH = objectId('1.3.6.1.5.5.7.3.2');

/** PEM. */
export type Certificate = { cert: string; key: string };

export type Authority = {
  /** PEM of the authority, for trust stores. */
  readonly cert: string;
  /** A server and client certificate, valid from yesterday until the life of the authority ends, shifted by `shiftMs`. `hosts`: names and IPv4 addresses. */
  issue(name: string, hosts?: string[], shiftMs?: number): Certificate;
};

/** `lifeMs`: how long the certificates are valid from now on. */
export function createAuthority(name: string, lifeMs = DAY_MS): Authority {
  const pair = keyPair();
  const usage = [
    extension(BASIC_CONSTRAINTS, sequence(boolean(true)), true),
    extension(KEY_USAGE, bits(Buffer.of(0b0000_0110), 1), true),
  ];
  return {
    cert: certificate({
      issuer: name,
      subject: name,
      publicKey: pair.publicKey,
      signer: pair.privateKey,
      extensions: usage,
      lifeMs,
    }),
    issue: (subject, hosts = ['localhost', '127.0.0.1'], shiftMs = 0) => {
      const { publicKey, privateKey } = keyPair();
      const extensions = [
        extension(EXTENDED_KEY_USAGE, sequence(SERVER_AUTH, CLIENT_AUTH)),
        extension(ALT_NAME, sequence(...hosts.map(altName))),
      ];
      const cert = certificate({ issuer: name, subject, publicKey, signer: pair.privateKey, extensions, shiftMs, lifeMs });
      return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
    },
  };
}

const keyPair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });

type Content = {
  issuer: string;
  subject: string;
  publicKey: KeyObject;
  signer: KeyObject;
  extensions: Buffer[];
  shiftMs?: number;
  lifeMs: number;
};

/** RFC 5280 4.1. */
function certificate({ issuer, subject, publicKey, signer, extensions, shiftMs = 0, lifeMs }: Content): string {
  const now = Date.now() + shiftMs;
  const content = sequence(
    tagged(0, integer(Buffer.of(2))),
    integer(Buffer.concat([Buffer.of(1), randomBytes(8)])),
    ECDSA_WITH_SHA256,
    named(issuer),
    sequence(utcTime(new Date(now - DAY_MS)), utcTime(new Date(now + lifeMs))),
    named(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(3, sequence(...extensions)),
  );
  const der = sequence(content, ECDSA_WITH_SHA256, bits(sign('sha256', content, signer)));
  const lines = der.toString('base64').replaceAll(/.{1,64}/g, '$&\n');
  return `-----BEGIN CERTIFICATE-----\n${lines}-----END CERTIFICATE-----\n`;
}

/** A name with only a common name. */
const named = (name: string) => sequence(set(sequence(objectId('2.5.4.3'), utf8(name))));

function extension(id: string, value: Uint8Array, critical = false): Buffer {
  return sequence(objectId(id), ...(critical ? [boolean(true)] : []), octets(value));
}

function altName(host: string): Buffer {
  return isIP(host) === 4 ? implicit(7, Buffer.from(host.split('.').map(Number))) : implicit(2, Buffer.from(host));
}
