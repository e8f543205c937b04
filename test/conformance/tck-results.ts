/** Group of a test: a binding, the agent card, or any binding. */
const BINDINGS = ['jsonrpc', 'http_json', 'grpc', 'card', 'any'] as const;
export type Binding = (typeof BINDINGS)[number];

export const LEVELS = ['must', 'should', 'may'] as const;
export type Level = (typeof LEVELS)[number];

/** `unmet`: a SHOULD or MAY that the kit reports as xfail. */
export type Outcome = 'passed' | 'failed' | 'unmet' | 'skipped';

export type Result = { test: string; binding: Binding; level: Level; outcome: Outcome; reason: string };

/** Why a test does not pass. `kit`: the kit contradicts the specification. `later`: not yet implemented. `choice`: optional and unused. */
export type Known = { tests: string; why: 'kit' | 'later' | 'choice'; reason: string };

/** Tests of a JUnit file, by pytest's id. Requires `junit_family=xunit1`, which contains the file name. */
export function readJunit(xml: string): { test: string; outcome: Outcome; reason: string }[] {
  return Array.from(xml.matchAll(/<testcase ([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g), ([, head = '', body = '']) => {
    const { file = '', classname = '', name = '' } = attributesOf(head);
    const inFile = classname.slice(file.replace(/\.py$/, '').length + 1);
    const test = [file, ...inFile.split('.').filter(Boolean), name].join('::');
    const [, tag = '', attributes = ''] = /<(failure|error|skipped)([^>]*)>?/.exec(body) ?? [];
    const { type = '', message = '' } = attributesOf(attributes);
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

/** The kit puts the binding into a test's parameter, folder, class or name. */
export function bindingOf(test: string): Binding {
  const parameter = /(jsonrpc|http_json|grpc)\]$/.exec(test)?.[1];
  if (parameter !== undefined) return parameter as Binding;
  if (/\/agent_card\//.test(test)) return 'card';
  if (/\/http_json\/|::TestRest|_(rest|http_json)$/.test(test)) return 'http_json';
  if (/\/grpc\/|::TestGrpc|_grpc$/.test(test)) return 'grpc';
  return /\/jsonrpc\/|::TestJsonRpc|_jsonrpc$/.test(test) ? 'jsonrpc' : 'any';
}

export type Verdict = {
  /** Tests that did not pass and have no explanation. */
  unexpected: Result[];
  /** Tests that did not pass but have an explanation. */
  explained: { known: Known; results: Result[] }[];
  /** Explanations that match no failed test. */
  stale: Known[];
};

/**
 * Checks that each test that ran passes or is explained; a skipped test does not pass. `all` includes excluded bindings, whose explanations
 * are not stale.
 */
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

/** Markdown table of results, with a row for each binding and level with tests. */
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
