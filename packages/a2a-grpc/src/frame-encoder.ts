import type { Dialect, DialectName } from '@hopline/a2a';
import type { EventEncoder } from '@hopline/a2a-server';
import { withGeneration } from '@hopline/agent-card';
import { lengthPrefixed } from './call-stream.ts';
import { PROCEDURES, type Procedure } from './services.ts';

/**
 * Events in wire format: the same bytes for every viewer. `counting`: they include their generation, encoded separately
 * so that other viewers do not pay for it.
 */
type Forms = { plain: EventEncoder<Buffer>; counting: EventEncoder<Buffer> };

function formsOf({ dialect, response }: Procedure): Forms {
  const framed = (event: Parameters<Dialect['encodeEvent']>[0]) => lengthPrefixed(response(dialect.encodeEvent(event)));
  return {
    plain: { encode: framed },
    counting: { encode: (event, _index, generation) => framed(withGeneration(event, generation)) },
  };
}

const forms = new Map<DialectName, Forms>();
for (const procedure of PROCEDURES) if (procedure.streams) forms.set(procedure.dialect.name, formsOf(procedure));

/** Throws for the legacy form, which has no gRPC. */
export function frameEncoder({ name }: Dialect, form: keyof Forms = 'plain'): EventEncoder<Buffer> {
  const known = forms.get(name);
  if (known === undefined) throw new Error(`${name} has no gRPC`);
  return known[form];
}
