import { createFileRegistry, type DescMessage, type DescService, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { DESCRIPTORS } from './descriptors.ts';

// Takes 4 ms, once at load.
export const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, Buffer.from(DESCRIPTORS, 'base64')));

/** The type of a message in `proto` or google.rpc, by its full name. Throws for an unknown name. */
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
