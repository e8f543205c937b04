import { useEffect, useRef, useState } from 'preact/hooks';
import type { Connection } from './connection.ts';

/** Asks for the credentials that ingress accepts: a token of the issuer, or an API key. */
export function SignIn({
  connection,
  apiKeyHeader,
  onDone,
}: {
  connection: Connection;
  apiKeyHeader: string;
  onDone: () => void;
}) {
  const [kind, setKind] = useState<'token' | 'key'>(connection.signsInByKey ? 'key' : 'token');
  const [value, setValue] = useState('');
  const field = useRef<HTMLInputElement>(null);
  // The field that had the focus is gone if the credentials expired.
  useEffect(() => field.current?.focus(), []);
  // Characters that a header may contain; with others each request would fail in the browser.
  const isSendable = /^[\x21-\x7e]*$/.test(value.trim());
  const submit = (event: Event) => {
    event.preventDefault();
    const text = value.trim();
    if (text === '' || !isSendable) return;
    connection.signIn(
      kind === 'key' ? { header: apiKeyHeader, value: text } : { header: 'authorization', value: `Bearer ${text}` },
    );
    onDone();
  };
  return (
    <main class="sign-in">
      <form class="card" onSubmit={submit}>
        <h1>{connection.isSignedIn ? 'Not accepted' : 'Sign in'}</h1>
        <p class="muted">
          {connection.isSignedIn
            ? connection.signsInByKey
              ? 'Ingress refused this API key.'
              : 'Ingress refused this token. It may have expired.'
            : 'Ingress asks for credentials. The console sends them with each request, and keeps them in this tab until it closes.'}
        </p>
        <fieldset class="segments">
          <legend class="visually-hidden">Kind of credentials</legend>
          {(['token', 'key'] as const).map(one => (
            <label key={one}>
              <input type="radio" name="kind" checked={kind === one} onChange={() => setKind(one)} />
              <span>{one === 'token' ? 'Bearer token' : 'API key'}</span>
            </label>
          ))}
        </fieldset>
        <label class="field">
          <span>{kind === 'token' ? 'Token (JWT)' : `Key (sent as ${apiKeyHeader})`}</span>
          <input
            ref={field}
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={value}
            aria-invalid={!isSendable}
            onInput={event => setValue(event.currentTarget.value)}
          />
        </label>
        {!isSendable && (
          <p class="notice notice-error" role="alert">
            It contains spaces or characters that a header cannot have: was more copied than the{' '}
            {kind === 'key' ? 'key' : 'token'}?
          </p>
        )}
        <button type="submit" class="button button-primary">
          Sign in
        </button>
      </form>
    </main>
  );
}
