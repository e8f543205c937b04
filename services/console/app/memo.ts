import { Component, type ComponentType, type createElement } from 'preact';

type Rendered<P> = (props: P) => ReturnType<typeof createElement> | null;

/** Renders a component again only when one of its props has changed. */
export function memo<P extends object>(Inner: Rendered<P>): ComponentType<P> {
  return memoOf(Inner, next => Object.keys(next) as (keyof P)[]);
}

/** Like `memo`, but only these props count. */
export function memoBy<P extends object>(names: readonly (keyof P)[], Inner: Rendered<P>): ComponentType<P> {
  return memoOf(Inner, () => names);
}

function memoOf<P extends object>(Inner: Rendered<P>, namesOf: (next: P) => readonly (keyof P)[]): ComponentType<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const before = this.props as P;
      return namesOf(next).some(name => next[name] !== before[name]);
    }

    override render() {
      return Inner(this.props as P);
    }
  };
}
