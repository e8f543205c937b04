/**
 * How a caller proves who it is, in one form for clients of every version. 0.3 and 1.0 call the requirements differently, so both stand side by side; the schemes have one name, so each
 * scheme carries its kind twice: as the member that 1.0 reads (`httpAuthSecurityScheme`), and as `type` with the members of 0.3 beside it.
 * The SDK's client for 1.0 converts a card whose schemes have no `type` into its in-memory form, and cannot verify its signature after that.
 */
export type CardSecurity = {
  securitySchemes: Record<string, Record<string, unknown>>;
  securityRequirements: { schemes: Record<string, { list?: string[] }> }[];
  security: Record<string, string[]>[];
};
