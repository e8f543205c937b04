import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lockedChecksums, type Subject, sbom } from './bill-of-materials.ts';

const LOCKFILE = `packages:

  '@scope/one@1.0.0(peer@2.0.0)':
    resolution: {integrity: sha512-cGVlcg==}

  '@scope/one@1.0.0':
    resolution: {integrity: sha512-b25l}
    engines: {node: '>=20'}

  two@2.0.0:
    resolution: {integrity: sha512-dHdv}
`;
const SUBJECT = { type: 'application', name: 'hopline', version: '1.2.3', node: '26.0.0' } as const;
const one = { name: '@scope/one', version: '1.0.0', license: 'MIT', folder: '' };
const two = { name: 'two', version: '2.0.0', license: 'SEE LICENSE IN LICENSE', folder: '' };

test('a package is listed with the checksum of the lockfile and its license', () => {
  const { components } = sbom(SUBJECT, [one, two], lockedChecksums(LOCKFILE)) as { components: Record<string, unknown>[] };
  assert.deepEqual(components[1], {
    type: 'library',
    name: '@scope/one',
    version: '1.0.0',
    licenses: [{ license: { id: 'MIT' } }],
    purl: 'pkg:npm/%40scope/one@1.0.0',
    hashes: [{ alg: 'SHA-512', content: Buffer.from('one').toString('hex') }],
  });
  assert.deepEqual(components[2]?.licenses, [{ license: { name: 'SEE LICENSE IN LICENSE' } }]);
});

test('a package that the lockfile does not pin is refused', () => {
  assert.throws(() => sbom(SUBJECT, [{ ...two, version: '2.0.1' }], lockedChecksums(LOCKFILE)), /two@2\.0\.1 is listed, but/);
});

test('the serial number is a UUID that depends only on the content', () => {
  const serial = (packages: (typeof one)[]) =>
    (sbom(SUBJECT, packages, lockedChecksums(LOCKFILE)) as { serialNumber: string }).serialNumber;
  assert.match(serial([one]), /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(serial([one]), serial([{ ...one }]));
  assert.notEqual(serial([one]), serial([one, two]));
});

test('Node is listed only for a subject that contains it, and a different name gives a different serial number', () => {
  const listed = (subject: Subject) =>
    sbom(subject, [one], lockedChecksums(LOCKFILE)) as { components: { name: string }[]; serialNumber: string };
  const library = { type: 'library', name: '@hopline/client', version: '1.2.3' } as const;
  assert.deepEqual(
    [SUBJECT, library].map(subject => listed(subject).components.map(({ name }) => name)),
    [['node', '@scope/one'], ['@scope/one']],
  );
  assert.notEqual(listed(library).serialNumber, listed({ ...library, name: '@hopline/agent' }).serialNumber);
});
