export type { Authenticator, AuthOptions, Headers } from './authenticator.ts';
export { createAuthenticator } from './authenticator.ts';
export type { Caller } from './caller.ts';
export type { CardSecurity } from './card-security.ts';
export type { AuthSettings } from './settings.ts';
export { AUTH_SETTINGS, authFromSettings, withAuthChecked } from './settings.ts';
