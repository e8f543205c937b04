/** Where a test of the kit belongs: a binding, the agent card, or whichever binding is there. */
const BINDINGS = ['jsonrpc', 'http_json', 'grpc', 'card', 'any'] as const;
export type Binding = (typeof BINDINGS)[number];

export const LEVELS = ['must', 'should', 'may'] as const;
export type Level = (typeof LEVELS)[number];

/** `unmet`: a SHOULD or MAY that the kit reports without failing (xfail). */
export type Outcome = 'passed' | 'failed' | 'unmet' | 'skipped';

export type Result = { test: string; binding: Binding; level: Level; outcome: Outcome; reason: string };

/** Why a test is not passed. `kit`: the kit contradicts the specification. `later`: an operation Hopline does not have yet. `choice`: optional, and not chosen. */
export type Known = { tests: string; why: 'kit' | 'later' | 'choice'; reason: string };

/** Tests of a JUnit file, by pytest's id. Needs `junit_family=xunit1`, which names the file. */
export function readJunit(xml: string): { test: string; outcome: Outcome; reason: string }[] {
  return Array.from(xml.matchAll(/<testcase ([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g), ([, head = '', body = '']) => {
    const { file = '', classname = '', name = '' } = attributesOf(head);
    const inFile = classname.slice(file.replace(/\.py$/, '').length + 1);
    const test = [file, ...inFile.split('.').filter(Boolean), name].join('::');
    const [, tag = '', said = ''] = /<(failure|error|skipped)([^>]*)>?/.exec(body) ?? [];
    const { type = '', message = '' } = attributesOf(said);
    return { test, outcome: outcomeOf(tag, type), reason: message };
  });
}

function outcomeOf(tag: string, type: string): Outcome {
  if (tag === '') return 'passed';
  if (tag !== 'skipped') return 'failed';
  return type === 'pytest.xfail' ? 'unmet' : 'skipped';
}

function attributesOf(text: string): Record<string, string> {
  return Object.fromEntries(Array.from(text.matchAll(/(\w+)="([^"]*)"/g), ([, name, value]) => [name, unescaped(value!)]));
}

function unescaped(text: string): string {
  return text
    .replaceAll('&#10;', '\n')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&');
}

/** The kit writes the binding into the test's parameter, its folder, its class or its name. */
export function bindingOf(test: string): Binding {
  const parameter = /(jsonrpc|http_json|grpc)\]$/.exec(test)?.[1];
  if (parameter !== undefined) return parameter as Binding;
  if (/\/agent_card\//.test(test)) return 'card';
  if (/\/http_json\/|::TestRest|_(rest|http_json)$/.test(test)) return 'http_json';
  if (/\/grpc\/|::TestGrpc|_grpc$/.test(test)) return 'grpc';
  return /\/jsonrpc\/|::TestJsonRpc|_jsonrpc$/.test(test) ? 'jsonrpc' : 'any';
}

export type Verdict = {
  /** Not passed, and nobody said why. */
  unexpected: Result[];
  /** Not passed, and why. */
  explained: { known: Known; results: Result[] }[];
  /** Entries of the list that explain nothing any more. */
  stale: Known[];
};

/** Every test that was run passes or is explained; a skipped one is not passed. `all`: with those of bindings that were left out, whose explanations are not stale. */
export function judge(ran: readonly Result[], known: readonly Known[], all: readonly Result[] = ran): Verdict {
  const open = new Set(ran.filter(({ outcome }) => outcome !== 'passed'));
  const explained = known.map(one => {
    const matched = [...open].filter(({ test }) => test.includes(one.tests));
    for (const result of matched) open.delete(result);
    return { known: one, results: matched };
  });
  return {
    unexpected: [...open],
    explained: explained.filter(one => one.results.length > 0),
    stale: explained.flatMap(({ known: one, results }) => {
      const concerns = ({ test }: Result) => test.includes(one.tests);
      return results.length === 0 && (ran.some(concerns) || !all.some(concerns)) ? [one] : [];
    }),
  };
}

/** Markdown table of the figures, a row for each binding and level that has tests. */
export function figures(results: readonly Result[]): string {
  const rows = BINDINGS.flatMap(binding =>
    LEVELS.flatMap(level => {
      const some = results.filter(result => result.binding === binding && result.level === level);
      const count = (outcome: Outcome) => some.filter(result => result.outcome === outcome).length;
      const counts = [some.length, count('passed'), count('failed'), count('unmet'), count('skipped')];
      return some.length === 0 ? [] : [`| ${binding} | ${level.toUpperCase()} | ${counts.join(' | ')} |`];
    }),
  );
  return ['| binding | level | tests | passed | failed | unmet | skipped |', '|---|---|---|---|---|---|---|', ...rows].join('\n');
}
