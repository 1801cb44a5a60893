import { signal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';

/** Where we are. The page's state that is worth keeping (filters, tabs) stands in the address. */
export const here = signal({ path: location.pathname, search: new URLSearchParams(location.search) });

let guard: (() => boolean) | undefined;
/** leaveGuard asks before a screen is left on which something was typed; returns how to take it away. */
export function leaveGuard(f: () => boolean) {
  guard = f;
  return () => { if (guard === f) guard = undefined; };
}

const read = () => { here.value = { path: location.pathname, search: new URLSearchParams(location.search) }; };

export function go(to: string, how: 'push' | 'replace' = 'push') {
  const [path, part] = [to.split(/[?#]/)[0], to.split('#')[1]];
  if (path !== here.value.path && guard && !guard()) return;
  if (path !== here.value.path) scrollTo(0, 0);
  history[how === 'push' ? 'pushState' : 'replaceState'](null, '', to);
  read();
  if (part) document.getElementById(part)?.scrollIntoView({ block: 'start' }); // if it is there already
}

/** Sets some values of the query, '' and undefined taking them away. */
export function setQuery(values: Record<string, string | undefined>) {
  const q = new URLSearchParams(here.value.search);
  for (const [k, v] of Object.entries(values)) v ? q.set(k, v) : q.delete(k);
  const text = q.toString();
  go(here.value.path + (text && '?' + text), 'replace');
}

let shown = here.value.path;
addEventListener('popstate', () => {
  if (location.pathname !== shown && guard && !guard()) {
    history.pushState(null, '', shown); // stay
    return;
  }
  read();
});
here.subscribe((h) => { shown = h.path; });

/** A link within the page. Other keys and buttons do with it what browsers do with links. */
export function Link({ to, children, onClick, ...rest }: { to: string; children?: ComponentChildren } & Omit<JSX.IntrinsicElements['a'], 'href' | 'onClick'> & { onClick?: () => void }) {
  const click = (e: MouseEvent) => {
    if (e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    onClick?.();
    go(to);
  };
  return <a {...rest} href={to} onClick={click}>{children}</a>;
}
