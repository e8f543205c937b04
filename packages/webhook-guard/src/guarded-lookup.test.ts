import assert from 'node:assert/strict';
import type { LookupAddress } from 'node:dns';
import { test } from 'node:test';
import { AllowList } from './allow-list.ts';
import { ForbiddenAddress, guardedLookup, type Resolve } from './guarded-lookup.ts';

const PUBLIC: LookupAddress = { address: '93.184.215.14', family: 4 };
const PUBLIC_6: LookupAddress = { address: '2606:2800:21f::1', family: 6 };
const LOOPBACK: LookupAddress = { address: '127.0.0.1', family: 4 };

type Lookup = LookupAddress[] | { address: string; family: number | undefined };

function look(resolve: Resolve, options: { all?: boolean; family?: number } = { all: true }, allow = ''): Promise<Lookup> {
  const lookup = guardedLookup({ http: true, allow: new AllowList(allow) }, resolve);
  return new Promise((done, fail) => {
    lookup('hooks.example', options, (error, address, family) => {
      if (error !== null) fail(error);
      else done(typeof address === 'string' ? { address, family } : address);
    });
  });
}

test('public addresses are returned unchanged, in both callback forms and by family', async () => {
  const both = async () => [PUBLIC, PUBLIC_6];
  assert.deepEqual(await look(both), [PUBLIC, PUBLIC_6]);
  assert.deepEqual(await look(both, { all: true, family: 6 }), [PUBLIC_6]);
  assert.deepEqual(await look(both, { family: 6 }), PUBLIC_6);
  assert.deepEqual(await look(both, {}), PUBLIC);
});

test('a name with one forbidden address among public ones is rejected', async () => {
  await assert.rejects(
    look(async () => [PUBLIC, LOOPBACK]),
    ForbiddenAddress,
  );
  await assert.rejects(
    look(async () => [PUBLIC, { address: '::ffff:10.0.0.1', family: 6 }], { all: true, family: 4 }),
    ForbiddenAddress,
  );
});

test('the allow-list permits names and addresses', async () => {
  const local = async () => [LOOPBACK];
  assert.deepEqual(await look(local, { all: true }, 'hooks.example'), [LOOPBACK]);
  assert.deepEqual(await look(local, { all: true }, '127.0.0.0/8'), [LOOPBACK]);
  await assert.rejects(look(local, { all: true }, 'other.example,10.0.0.0/8'), ForbiddenAddress);
});

test('a name without an address and a failing name server reject', async () => {
  await assert.rejects(
    look(async () => []),
    { code: 'ENOTFOUND' },
  );
  await assert.rejects(
    look(async () => [PUBLIC], { all: true, family: 6 }),
    { code: 'ENOTFOUND' },
  );
  await assert.rejects(
    look(async () => {
      throw Object.assign(new Error('refused'), { code: 'EREFUSED' });
    }),
    { code: 'EREFUSED' },
  );
});

test('the name is resolved again at every connect', async () => {
  const answers = [[PUBLIC], [LOOPBACK]];
  const rebinding = async () => answers.shift() ?? [];
  assert.deepEqual(await look(rebinding), [PUBLIC]);
  await assert.rejects(look(rebinding), ForbiddenAddress);
});
