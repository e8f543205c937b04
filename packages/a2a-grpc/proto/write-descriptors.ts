/**
 * Writes src/descriptors.ts from the .proto files in this folder. Run it only after a .proto file has changed:
 *
 *   pip install grpcio-tools googleapis-common-protos
 *   node packages/a2a-grpc/proto/write-descriptors.ts PYTHON
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { clearField, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  type DescriptorProto,
  DescriptorProtoSchema,
  FieldDescriptorProtoSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  MethodDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt';

const HERE = fileURLToPath(new URL('.', import.meta.url));
/** `google/rpc` comes with googleapis-common-protos. */
const FILES = ['a2a-1.0.proto', 'a2a-0.3.proto', 'google/rpc/status.proto', 'google/rpc/error_details.proto'];
/** Annotations for HTTP gateways and code generators. A codec does not need them, and they import five files. */
const isAnnotation = (path: string): boolean => path.startsWith('google/api/') || path === 'google/protobuf/descriptor.proto';

const python = process.argv[2] ?? 'python3';
const folder = mkdtempSync(join(tmpdir(), 'descriptors-'));
try {
  const compiled = join(folder, 'set.binpb');
  const packages = execFileSync(python, ['-c', 'import sysconfig; print(sysconfig.get_paths()["purelib"])'], {
    encoding: 'utf8',
  });
  const imports = [`-I${HERE}`, `-I${packages.trim()}`];
  execFileSync(python, [
    '-m',
    'grpc_tools.protoc',
    ...imports,
    '--include_imports',
    `--descriptor_set_out=${compiled}`,
    ...FILES,
  ]);
  const set = fromBinary(FileDescriptorSetSchema, readFileSync(compiled));
  set.file = set.file.filter(file => !isAnnotation(file.name));
  for (const file of set.file) dropAnnotations(file);
  const base64 = Buffer.from(toBinary(FileDescriptorSetSchema, set)).toString('base64');
  writeFileSync(
    fileURLToPath(new URL('../src/descriptors.ts', import.meta.url)),
    `/** Made by proto/write-descriptors.ts. A google.protobuf.FileDescriptorSet of proto/*.proto, google/rpc/{status,error_details}.proto and what they import. */
export const DESCRIPTORS =
  '${base64}';
`,
  );
} finally {
  rmSync(folder, { recursive: true });
}

function dropAnnotations(file: FileDescriptorProto): void {
  file.dependency = file.dependency.filter(path => !isAnnotation(path));
  clearField(file, FileDescriptorProtoSchema.field.options);
  for (const service of file.service)
    for (const method of service.method) clearField(method, MethodDescriptorProtoSchema.field.options);
  for (const message of file.messageType) dropFromMessage(message);
}

/** Keeps `map_entry`, the only option that a codec needs. */
function dropFromMessage(message: DescriptorProto): void {
  for (const field of message.field) clearField(field, FieldDescriptorProtoSchema.field.options);
  if (message.options?.mapEntry !== true) clearField(message, DescriptorProtoSchema.field.options);
  for (const nested of message.nestedType) dropFromMessage(nested);
}
