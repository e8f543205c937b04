import { createFileRegistry, type DescMessage, type DescService, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { DESCRIPTORS } from './descriptors.ts';

// 4 ms once, at load.
export const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, Buffer.from(DESCRIPTORS, 'base64')));

/** A message of the definitions in `proto`, or of google.rpc, by its full name. Throws for a name that is none. */
export function messageType(name: string): DescMessage {
  const type = registry.getMessage(name);
  if (type === undefined) throw new Error(`no message ${name}`);
  return type;
}

export function serviceType(name: string): DescService {
  const type = registry.getService(name);
  if (type === undefined) throw new Error(`no service ${name}`);
  return type;
}
