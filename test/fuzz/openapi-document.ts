import type { JsonObject } from '@hopline/a2a';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

/** The parts of an OpenAPI 3.1 document that the fuzzer uses. */
export type Parameter = { name: string; in: 'path' | 'query' | 'header'; required?: boolean; schema: JsonObject };
type Media = { schema?: JsonObject };
type Operation = {
  operationId: string;
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Record<string, Media> };
  responses: Record<string, { content?: Record<string, Media> }>;
};
export type Described = { method: string; path: string; operation: Operation };

type Document = {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, JsonObject>; parameters: Record<string, JsonObject> };
};

/** A served OpenAPI document: operations with resolved parameters, and schemas as validators. */
export class OpenApiDocument {
  readonly operations: Described[];
  readonly #document: Document;
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false });
  readonly #checks = new Map<string, ValidateFunction>();

  constructor(text: string) {
    this.#document = JSON.parse(text) as Document;
    this.operations = Object.entries(this.#document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        operation: { ...operation, parameters: operation.parameters.map(one => this.resolved(one) as Parameter) },
      })),
    );
  }

  /** Resolves a reference; returns other values unchanged. */
  resolved(value: unknown): unknown {
    const { $ref } = value as { $ref?: string };
    if ($ref === undefined) return value;
    const path = $ref.slice('#/'.length).split('/');
    return path.reduce<unknown>((at, name) => (at as JsonObject)[name], this.#document);
  }

  /** The problem of a value under a schema of the document; undefined when it is valid. */
  problem(schema: JsonObject, value: unknown): string | undefined {
    const key = JSON.stringify(schema);
    const check = this.#checks.get(key) ?? this.#ajv.compile({ ...schema, components: this.#document.components });
    this.#checks.set(key, check);
    return check(value) ? undefined : JSON.stringify(check.errors);
  }
}
