/** Who asks. Both absent: nobody was asked who they are, at a door without authentication. */
export type Caller = { tenant?: string; subject?: string };

/** Longest subject, as OpenID Connect bounds `sub`; characters. */
export const SUBJECT_CHARS_MAX = 255;
/** Longest tenant; characters. */
export const TENANT_CHARS_MAX = 128;

export const isSubject = (value: unknown): value is string => isName(value, SUBJECT_CHARS_MAX);
export const isTenant = (value: unknown): value is string => isName(value, TENANT_CHARS_MAX);

function isName(value: unknown, charsMax: number): value is string {
  return typeof value === 'string' && value.length <= charsMax && value.isWellFormed() && /^[^\p{Cc}]+$/u.test(value);
}
