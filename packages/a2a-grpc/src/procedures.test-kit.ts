import assert from 'node:assert/strict';
import { fromBinary, fromJson, type JsonObject as ProtoJson, toBinary, toJson } from '@bufbuild/protobuf';
import type { JsonObject } from '@hopline/a2a';
import { messageType, registry, serviceType } from './messages.ts';
import { PROCEDURES, type Procedure } from './services.ts';

/** The procedure of a service, with both message types as a client sees them. */
export function clientOf(service: string, name: string) {
  const procedure = PROCEDURES.find(({ path }) => path === `/${service}/${name}`);
  const method = serviceType(service).methods.find(one => one.name === name);
  assert.ok(procedure !== undefined && method !== undefined, `no ${service}/${name}`);
  return {
    procedure: procedure as Procedure,
    write: (json: unknown): Uint8Array => toBinary(method.input, fromJson(method.input, json as ProtoJson)),
    read: (bytes: Uint8Array): JsonObject => toJson(method.output, fromBinary(method.output, bytes)) as JsonObject,
  };
}

export function read(type: string, bytes: Uint8Array): JsonObject {
  return toJson(messageType(type), fromBinary(messageType(type), bytes), { registry }) as JsonObject;
}
