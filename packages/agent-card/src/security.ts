/**
 * Security of a card for clients of every version. 0.3 and 1.0 name the requirements differently, so both are present. The
 * schemes share one name, so each has its kind twice: as the member of 1.0 (`httpAuthSecurityScheme`), and as `type` with the
 * members of 0.3. The SDK's client for 1.0 converts a card whose schemes lack `type` into its in-memory form, and then cannot
 * verify its signature.
 */
export type CardSecurity = {
  securitySchemes: Record<string, Record<string, unknown>>;
  securityRequirements: { schemes: Record<string, { list?: string[] }> }[];
  security: Record<string, string[]>[];
};
