import fc from 'fast-check';

/** Bytes that HTTP allows in a field value (RFC 9110, section 5.5), including those without a meaning in our headers. */
const anyValue = fc
  .array(fc.oneof(fc.integer({ min: 0x20, max: 0x7e }), fc.integer({ min: 0x80, max: 0xff })), { maxLength: 40 })
  .map(codes => String.fromCharCode(...codes).trim());

const VALUES: Record<string, string[]> = {
  'last-event-id': [
    '0.0',
    '1.1',
    '999999999999999.999999999999999',
    '-1.0',
    '1',
    '1.1.1',
    '1e3.1',
    'NaN',
    '\u00b3.\u00b9',
    '%00',
  ],
  'a2a-extensions': ['https://e/', ',,,', 'a'.repeat(4_000), '__proto__', 'https://e/,'.repeat(300)],
  'x-a2a-extensions': ['https://e/', ' , '],
  accept: ['*/*', 'text/html', 'application/json', 'text/event-stream;q=0', 'application/a2a+json, application/json', '/'],
  'content-type': [
    'application/a2a+json',
    'application/json; charset=utf-16',
    'application/json;',
    'APPLICATION/JSON',
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    '',
    'application',
    '/',
  ],
  'content-encoding': ['gzip', 'br', 'identity', 'gzip, gzip'],
  'accept-encoding': ['gzip', '*;q=0'],
  traceparent: [
    `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
    `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01`,
    '00',
    `ff-${'a'.repeat(32)}-b-01`,
  ],
  tracestate: ['a=1', '=,=', 'a'.repeat(5_000), 'a=\u00e9'],
  authorization: ['Bearer PLANTED-SECRET', 'Basic', 'Bearer', 'x'.repeat(4_000)],
  'if-none-match': ['*', '"', 'W/"x"'],
  'x-forwarded-host': ['evil.example.org'],
  host: ['evil.example.org', '127.0.0.1:1'],
  // None of these is in the server's list of origins.
  origin: ['null', '*', 'https://page.example.evil.example', 'HTTPS://PAGE.EXAMPLE', 'https://page.example, null'],
  'access-control-request-method': ['POST', 'TRACE', '*', '\u00e9'],
  'access-control-request-headers': ['a2a-version', '*', ',,,', 'x'.repeat(4_000)],
  range: ['bytes=0-1'],
  cookie: ['a=b; '.repeat(200)],
};

const field = fc
  .constantFrom(...Object.keys(VALUES))
  .chain(name =>
    fc.tuple(
      fc.constant(name),
      fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...VALUES[name]!) }, { weight: 1, arbitrary: anyValue }),
    ),
  );

/** Mostly no headers, so that the body is under test. */
export const headerFields: fc.Arbitrary<Record<string, string>> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: fc.array(field, { minLength: 1, maxLength: 3 }).map(fields => Object.fromEntries(fields)) },
);

/** At least one header, each hostile. */
export const hostileFields: fc.Arbitrary<Record<string, string>> = fc
  .array(field, { minLength: 1, maxLength: 5 })
  .map(fields => Object.fromEntries(fields));
