import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { editedSource } from '../support/source-edits.ts';
import { FOLDERS, type PackageName } from './mutant.ts';
import { MUTANTS } from './mutants.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const ALL = Object.entries(MUTANTS).flatMap(([of, mutants]) => mutants.map(mutant => ({ of: of as PackageName, ...mutant })));

test('every defect of the list applies to the current production code', () => {
  assert.ok(ALL.length >= 60, `${ALL.length} defects`);
  const faults: string[] = [];
  for (const { name, of, edits } of ALL) {
    for (const [file, ofFile] of Map.groupBy(edits, ({ file }) => file)) {
      try {
        editedSource(readFileSync(join(ROOT, file), 'utf8'), ofFile);
        assert.ok(
          FOLDERS[of].some(folder => file.startsWith(`${folder}/src/`)),
          `${file} does not belong to ${of}`,
        );
        assert.doesNotMatch(file, /\.test/);
      } catch (error) {
        faults.push(`${name}: ${(error as Error).message}`);
      }
    }
  }
  assert.deepEqual(faults, []);
});

test('the names of the defects differ, and the tests that should find them exist', () => {
  const names = ALL.map(({ name }) => name);
  assert.deepEqual(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  );
  const paths = ALL.flatMap(({ tests, withServer = [] }) => [...tests, ...withServer]);
  assert.deepEqual(
    paths.filter(path => !existsSync(join(ROOT, path))),
    [],
  );
});
