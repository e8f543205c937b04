import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { DEPENDENCY_REASONS } from './dependency-reasons.ts';
import { imageDependencies } from './image-dependencies.ts';
import { read } from './source-files.ts';

const packages = await imageDependencies();

test('every package that the image imports has a reason, and every reason belongs to such a package', () => {
  const direct = packages.filter(({ isDirect }) => isDirect).map(({ name }) => name);
  const reasons = DEPENDENCY_REASONS.flatMap(({ packages: names }) => names);
  assert.deepEqual(reasons.toSorted(), [...new Set(direct)].toSorted());
  assert.ok(direct.length > 20 && packages.length > direct.length);
});

test('every package of the image has a license that the review of pull requests allows', () => {
  const policy = parse(read('.github/dependency-review.yml')) as Record<string, string[]>;
  const allowed = policy['allow-licenses']!;
  const exceptions = policy['allow-dependencies-licenses']!;
  const names = (license: string) => license.replaceAll(/[()]/g, '').split(/ (?:AND|OR) /);
  const refused = packages.filter(
    ({ name, license }) =>
      !names(license).every(one => allowed.includes(one)) && !exceptions.includes(`pkg:npm/${name.replace('@', '%40')}`),
  );
  assert.deepEqual(
    refused.map(({ name, license }) => `${name}: ${license}`),
    [],
  );
});
