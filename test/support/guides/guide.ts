import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { notRun } from './not-run.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

export type CodeBlock = { language: string; text: string };

/** The code blocks of a document, in order, without the indentation of a list around them. */
export function codeBlocks(markdown: string): CodeBlock[] {
  const blocks = markdown.matchAll(/^( *)```(\w*)\n([\s\S]*?)^\1```$/gm);
  return [...blocks].map(([, indent, language, text]) => ({
    language: language!,
    text: text!.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  }));
}

/**
 * The parts that a reader runs: each command of a shell block, and every other block as a whole. Blocks in the language `text` are read,
 * not run.
 */
export function runnableParts(blocks: readonly CodeBlock[]): string[] {
  return blocks.flatMap(({ language, text }) => {
    if (language === 'text') return [];
    return language === 'sh' ? commandsOf(text) : [text];
  });
}

/** A command ends with its line, unless a backslash or a here-document continues it. */
function commandsOf(text: string): string[] {
  const commands = text.match(/(?:.*<<'(\w+)'\n[\s\S]*?^\1$|(?:.*\\\n)*.+)/gm) ?? [];
  return commands.map(command => command.trim());
}

/**
 * A guide of docs/guides whose code a test runs. It records the parts that the test has taken, so that `assertAllTaken` names those that
 * the test does not run and that `not-run.ts` does not explain.
 */
export class Guide {
  readonly name: string;
  readonly blocks: readonly CodeBlock[];
  readonly #left: Set<string>;

  constructor(name: string) {
    this.name = name;
    this.blocks = codeBlocks(readFileSync(join(ROOT, 'docs/guides', name), 'utf8'));
    this.#left = new Set(runnableParts(this.blocks).filter(part => notRun(name, part) === undefined));
  }

  /** This command, or the command that begins with this text. Throws unless there is exactly one. */
  command(begin: string): string {
    const commands = this.#commands();
    if (commands.includes(begin)) return this.#take(begin);
    const found = commands.filter(command => command.startsWith(begin));
    assert.equal(found.length, 1, `${found.length} commands of ${this.name} begin with "${begin}"`);
    return this.#take(found[0]!);
  }

  /** The settings and the arguments of the only command of the guide that begins with `npm start`, or with settings before it. */
  npmStart(setting = ''): { env: Record<string, string>; args: string[] } {
    const found = this.#commands().filter(
      command => command.startsWith(setting) && /^(?:[A-Z_]+=\S+ )*npm start\b/.test(command),
    );
    assert.equal(found.length, 1, `${found.length} commands of ${this.name} are npm start`);
    const [settings, args] = this.#take(found[0]!)
      .replace(/\s+#.*$/, '')
      .split(/npm start(?: -- )?/) as [string, string];
    return { env: settingsIn(settings), args: args.split(' ').filter(Boolean) };
  }

  /** The block that contains this text. Throws unless there is exactly one. */
  block(contained: string): string {
    const found = this.blocks.filter(({ language, text }) => language !== 'sh' && text.includes(contained));
    assert.equal(found.length, 1, `${found.length} blocks of ${this.name} contain "${contained}"`);
    return this.#take(found[0]!.text);
  }

  /** The block whose first line is a comment with this name of a file, and perhaps more. */
  file(name: string): string {
    const block = this.blocks.find(({ text }) => ['// ', '# '].some(comment => new RegExp(`^${comment}${name}\\b`).test(text)));
    assert.ok(block, `no block of ${this.name} begins with the name ${name}`);
    return this.#take(block.text);
  }

  /** The entries of the agents files among the blocks. */
  agents(): Record<string, unknown>[][] {
    const files = this.blocks.filter(({ language, text }) => language === 'json' && text.startsWith('{"agents"'));
    return files.map(({ text }) => JSON.parse(this.#take(text)).agents);
  }

  /** A folder with these files of the guide, whose imports find the packages of the tests. */
  folder(t: TestContext, names: readonly string[]): string {
    const folder = emptyProject();
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    for (const name of names) writeFileSync(join(folder, name), this.file(name));
    return folder;
  }

  /** Throws if a part of the guide was not taken. */
  assertAllTaken(): void {
    assert.deepEqual([...this.#left], [], `no test runs these parts of ${this.name}`);
  }

  #commands(): string[] {
    return this.blocks.flatMap(({ language, text }) => (language === 'sh' ? commandsOf(text) : []));
  }

  #take(part: string): string {
    this.#left.delete(part);
    return part;
  }
}

/** The settings before a command, or those of a block that contains nothing else. */
export function settingsIn(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/([A-Z_]+)=(\S+)/g)].map(([, name, value]) => [name!, value!]));
}

/** A folder outside the checkout for files of guides, whose imports find the packages of the tests. */
export function emptyProject(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-guide-'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module","private":true}\n');
  symlinkSync(join(ROOT, 'test/node_modules'), join(folder, 'node_modules'));
  return folder;
}
