import fc from 'fast-check';
import { headerFields } from './header-fields.ts';
import { damaged, HOSTILE, mutated } from './json-tree.ts';
import type { Described, OpenApiDocument, Parameter } from './openapi-document.ts';
import { ENDED, WAITING } from './placeholders.ts';
import { valuesOf } from './schema-values.ts';

/** `fits`: true if the request is valid according to the document, so that only the task's state can be a reason to reject it. */
export type FuzzedRest = {
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: Uint8Array | undefined;
  fits: boolean;
};

const METHODS = ['GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY', 'PROPFIND'];
const TYPES = ['application/a2a+json', 'application/json', 'application/json; charset=utf-8'];

/** Hostile path segments that HTTP can transport; others belong to the raw fuzzer. */
const wrongPart = fc.oneof(
  fc.constantFrom(
    '%',
    '%zz',
    '%00',
    '%2f',
    '%2e%2e',
    '%ff',
    '%F0%9F%98',
    'a:b',
    'a:cancel',
    ':',
    '::',
    '*',
    '__proto__',
    `${'x'.repeat(1_500)}`,
    "'",
    '"',
    ';a=b',
    '%0d%0a',
  ),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }).map(encodedPart),
);

/** A lone surrogate has no percent-encoding. */
function encodedPart(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

type Asked = { text: string; fits: boolean } | undefined;

const fitting = (text: fc.Arbitrary<string>): fc.Arbitrary<Asked> => text.map(one => ({ text: one, fits: true }));
const wrong = (text: fc.Arbitrary<string>): fc.Arbitrary<Asked> => text.map(one => ({ text: one, fits: false }));

function pathPart(document: OpenApiDocument, { name, schema }: Parameter, path: string): fc.Arbitrary<Asked> {
  const isTask = name === 'taskId' || !path.includes('{taskId}');
  const known = fc.constantFrom(...(isTask ? [WAITING, WAITING, ENDED] : ['hook']));
  const described = valuesOf(document, schema).map(value => encodedPart(String(value)));
  // Clients resolve the segments `.` and `..` before sending.
  const sendable = described.filter(text => text !== '' && text !== '.' && text !== '..');
  return fc.oneof(
    { weight: 6, arbitrary: fitting(known) },
    { weight: 2, arbitrary: fitting(sendable) },
    { weight: 1, arbitrary: wrong(wrongPart) },
  );
}

function queryValue(document: OpenApiDocument, { schema }: Parameter): fc.Arbitrary<Asked> {
  const described = valuesOf(document, schema).map(value => encodedPart(String(value)));
  const odd = fc.oneof(
    fc.constantFrom('%', '%zz', '1e1', '0x1', '+1', '%D9%A3', 'null', '-1', '99999999999999999999', '%00', 'a&b=c', '[]'),
    wrongPart,
  );
  return fc.oneof(
    { weight: 4, arbitrary: fc.constant<Asked>(undefined) },
    { weight: 3, arbitrary: fitting(described) },
    { weight: 1, arbitrary: wrong(odd) },
  );
}

/** Requests of one operation, with valid to invalid parameters and bodies, and sometimes another method, version or type. */
export function fuzzedRest(document: OpenApiDocument, { method, path, operation }: Described): fc.Arbitrary<FuzzedRest> {
  const of = (place: Parameter['in']) => operation.parameters.filter(one => one.in === place);
  const inPath = fc.tuple(...of('path').map(one => pathPart(document, one, path)));
  const inQuery = fc.tuple(...of('query').map(one => queryValue(document, one)));
  const extra = fc.oneof(
    { weight: 6, arbitrary: fc.constant('') },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        '__proto__=1',
        'pageSize=1&pageSize=2',
        'tenant=a&tenant=b',
        'A2A-Version=0.3',
        '&&=&',
        'cursor=x',
        'id=other',
      ),
    },
  );
  const verb = fc.oneof({ weight: 12, arbitrary: fc.constant(method) }, { weight: 1, arbitrary: fc.constantFrom(...METHODS) });
  const prefix = fc.oneof(
    { weight: 12, arbitrary: fc.constant('') },
    { weight: 1, arbitrary: fc.constantFrom('/a2a', '/acme', '/a2a/acme', '/v1', '//', '/%61cme') },
  );
  const version = fc.oneof(
    { weight: 15, arbitrary: fc.constant('1.0') },
    { weight: 1, arbitrary: fc.constantFrom('', '0.3', '2.0') },
  );
  const type = fc.oneof(
    { weight: 15, arbitrary: fc.constantFrom(...TYPES) },
    { weight: 1, arbitrary: fc.constantFrom('', 'text/plain', 'application/xml') },
  );
  const parts = { inPath, inQuery, extra, verb, prefix, version, type, more: headerFields, body: bodies(document, operation) };
  return fc.record(parts).map(made => {
    const names = of('path').map(one => `{${one.name}}`);
    const filledIn = names.reduce((text, name, index) => text.replace(name, () => made.inPath[index]!.text), path);
    const pairs = of('query').flatMap(({ name }, index) =>
      made.inQuery[index] === undefined ? [] : [`${name}=${made.inQuery[index].text}`],
    );
    const query = [...pairs, made.extra].filter(one => one !== '').join('&');
    const valid = [...made.inPath, ...made.inQuery].every(one => one?.fits !== false);
    const ordinary =
      made.extra === '' && made.verb === method && made.prefix === '' && made.version === '1.0' && TYPES.includes(made.type);
    return {
      method: made.verb,
      path: `${made.prefix}${filledIn}${query === '' ? '' : `?${query}`}`,
      headers: { 'a2a-version': made.version, ...(made.body && { 'content-type': made.type }), ...made.more },
      body: made.body?.bytes,
      fits: valid && ordinary && made.body?.fits !== false && Object.keys(made.more).length === 0,
    };
  });
}

type Body = { bytes: Uint8Array; fits: boolean } | undefined;

function bodies(document: OpenApiDocument, { requestBody }: Described['operation']): fc.Arbitrary<Body> {
  if (requestBody === undefined)
    return fc.oneof(
      { weight: 15, arbitrary: fc.constant<Body>(undefined) },
      { weight: 1, arbitrary: fc.constant<Body>({ bytes: Buffer.from('{}'), fits: false }) },
    );
  const { schema } = Object.values(requestBody.content)[0]!;
  const fits = valuesOf(document, schema!);
  const bytes = (text: string): Body => ({ bytes: Buffer.from(text), fits: true });
  const near = fits.chain(value => damaged(mutated(value))).map((one): Body => ({ bytes: one, fits: false }));
  return fc.oneof(
    { weight: 5, arbitrary: fits.map(value => bytes(JSON.stringify(value))) },
    { weight: 5, arbitrary: near },
    { weight: 1, arbitrary: fc.constantFrom(...HOSTILE).map((text): Body => ({ bytes: Buffer.from(text), fits: false })) },
    { weight: 1, arbitrary: fc.constant<Body>(requestBody.required ? { bytes: new Uint8Array(0), fits: false } : undefined) },
  );
}
