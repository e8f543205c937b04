import { ALLOWED_CONTEXTS, RETIRED_WORDS, SENTENCE_PATTERNS } from './retired-words.ts';
import { projectFiles, read } from './source-files.ts';

/** A retired word in a line of a file; line 0 is the path of the file. */
export type RetiredUse = { path: string; line: number; word: string; use: string };

/** Files whose text people read. Other files (recordings, golden files, lockfiles) are checked by name only. */
const TEXT = /\.(?:ts|mjs|md|py|html|ya?ml)$|(?:^|\/)package\.json$|^test\/repo\/.*\.json$/;
/** The list itself, and files generated from checked sources or quoted from other projects. */
const UNREAD: readonly RegExp[] = [
  /^test\/repo\/retired-words/,
  /^docs\/contract\.md$/,
  /^(?:infra\/SETTINGS|docs\/reference\/(?:settings|cli|metrics))\.md$/,
  /^packages\/a2a-grpc\/src\/descriptors\.ts$/,
  /^pnpm-lock\.yaml$/,
];

/** `isToldBy`, `IS_TOLD_BY` and `is-told-by` become "is told by". */
export function splitWords(text: string): string {
  return text
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .replaceAll(/(?<=\w)[_-](?=\w)/g, ' ')
    .toLowerCase();
}

/** The retired words of one line, and its sentences that read as translated. */
export function retiredIn(text: string): { word: string; use: string }[] {
  const rest = ALLOWED_CONTEXTS.reduce((line, allowed) => line.replaceAll(allowed, ''), text);
  const split = splitWords(rest);
  return [...RETIRED_WORDS, ...SENTENCE_PATTERNS].filter(({ pattern, verbatim }) => pattern.test(verbatim ? rest : split));
}

/** All retired words in texts and paths of the project. */
export function retiredUses(): RetiredUse[] {
  return projectFiles()
    .filter(path => !UNREAD.some(unread => unread.test(path)))
    .flatMap(path => {
      const lines = [path, ...(TEXT.test(path) ? read(path).split('\n') : [])];
      return lines.flatMap((text, line) => retiredIn(text).map(({ word, use }) => ({ path, line, word, use })));
    });
}

/** `path:line "word": use …`. Without a line if the path itself contains the word. */
export function describeUse({ path, line, word, use }: RetiredUse): string {
  return `${line === 0 ? path : `${path}:${line}`} "${word}": use ${use}`;
}
