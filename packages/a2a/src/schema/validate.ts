import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { TSchema } from 'typebox';
import { A2AError } from '../errors.ts';

// One instance, every schema compiled once, when it is first needed: compiling costs milliseconds (16 schemas 55), checking microseconds. Never at load: it makes code out of text, which pages whose
// Content-Security-Policy lacks 'unsafe-eval' refuse, and a client checks no params.
const ajv = new Ajv({ strict: false, verbose: true, validateFormats: false });

/** A check of params against a schema. The reason it throws names the path and the rule, never the value (C-21). */
export function paramsCheck(schema: TSchema): (params: unknown) => void {
  let check: ValidateFunction | undefined;
  return params => {
    check ??= ajv.compile(schema);
    if (!check(params)) throw new A2AError('INVALID_PARAMS', { detail: reasonOf(check.errors ?? []) });
  };
}

function reasonOf(errors: ErrorObject[]): string {
  // The last one is the outermost rule that failed: of a part that is none of four forms, the sentence written for all of them.
  const error = errors.at(-1);
  if (error === undefined) return 'params do not fit';
  const path = `params${error.instancePath.replaceAll(/\/(\d+)/g, '[$1]').replaceAll('/', '.')}`;
  const written = (error.parentSchema as { reason?: string } | undefined)?.reason;
  return `${path} ${written ?? error.message ?? 'does not fit'}`;
}
