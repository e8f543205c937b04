import { randomUUID } from 'node:crypto';
import { nkeys } from '@nats-io/nats-core';

type KeyPair = ReturnType<typeof nkeys.createUser>;

const base64url = (text: string | Uint8Array) => Buffer.from(text).toString('base64url');

/** A NATS JWT, signed with an nkey (https://docs.nats.io/running-a-nats-service/configuration/securing_nats/jwt). */
function jwt(issuer: KeyPair, subject: KeyPair, nats: Record<string, unknown>): string {
  const iat = Math.floor(Date.now() / 1000);
  const claims = { jti: randomUUID(), iat, iss: issuer.getPublicKey(), name: 'test', sub: subject.getPublicKey() };
  const head = base64url(JSON.stringify({ typ: 'JWT', alg: 'ed25519-nkey' }));
  const signed = `${head}.${base64url(JSON.stringify({ ...claims, nats: { ...nats, version: 2 } }))}`;
  return `${signed}.${base64url(issuer.sign(Buffer.from(signed)))}`;
}

const NO_LIMITS = { subs: -1, data: -1, payload: -1 };
const ACCOUNT_LIMITS = { ...NO_LIMITS, conn: -1, leaf: -1, imports: -1, exports: -1, wildcards: true };
const STORAGE_LIMITS = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };

/** Accounts of an operator, as in managed NATS services. `config`: lines for the server's configuration. */
export function createOperator() {
  const [operator, system, account] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createAccount()];
  const preload = {
    [system.getPublicKey()]: jwt(operator, system, { type: 'account', limits: ACCOUNT_LIMITS }),
    [account.getPublicKey()]: jwt(operator, account, { type: 'account', limits: { ...ACCOUNT_LIMITS, ...STORAGE_LIMITS } }),
  };
  return {
    config: `operator: ${jwt(operator, operator, { type: 'operator' })}
system_account: ${system.getPublicKey()}
resolver: MEMORY
resolver_preload: ${JSON.stringify(preload)}`,
    /** Content of a credentials file for a new user. */
    credentials(of: KeyPair = account): string {
      const user = nkeys.createUser();
      const seed = Buffer.from(user.getSeed()).toString();
      return `-----BEGIN NATS USER JWT-----\n${jwt(of, user, { type: 'user', ...NO_LIMITS })}\n------END NATS USER JWT------\n
-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`;
    },
    /** Credentials of a user whose account is unknown to the server. */
    strangersCredentials(): string {
      return this.credentials(nkeys.createAccount());
    },
  };
}
