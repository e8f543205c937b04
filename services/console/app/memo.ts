import { Component, type ComponentType, type createElement } from 'preact';

/** Renders a component again only when one of its props has changed. */
export function memo<P extends object>(Inner: (props: P) => ReturnType<typeof createElement> | null): ComponentType<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const own = this.props as P;
      return (Object.keys(next) as (keyof P)[]).some(name => next[name] !== own[name]);
    }

    override render() {
      return Inner(this.props as P);
    }
  };
}
