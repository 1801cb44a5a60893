import { signal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

/** Where we are. The page's state that is worth keeping (filters, tabs) stands in the address. */
export const here = signal({ path: location.pathname, search: new URLSearchParams(location.search) });

let guard: (() => boolean) | undefined;
/** leaveGuard asks before a screen is left on which something was typed; returns how to take it away. */
export function leaveGuard(f: () => boolean) {
  guard = f;
  return () => { if (guard === f) guard = undefined; };
}

/** How far what is come back to was scrolled, for as long as it has not grown to that height again. */
let back = 0;
function scrollBack(y: number) {
  const mine = (back = y), until = performance.now() + 3000;
  const step = () => {
    if (back !== mine || y <= 0) return;
    const high = document.documentElement.scrollHeight - innerHeight >= y;
    if (high || performance.now() > until) { back = 0; scrollTo(0, y); } else requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}
for (const by of ['wheel', 'touchstart', 'keydown', 'pointerdown']) addEventListener(by, () => { back = 0; }, { passive: true }); // who moves on by hand is not pulled back

const read = () => { here.value = { path: location.pathname, search: new URLSearchParams(location.search) }; };

export function go(to: string, how: 'push' | 'replace' = 'push') {
  const [path, part] = [to.split(/[?#]/)[0], to.split('#')[1]];
  if (path !== here.value.path && guard && !guard()) return;
  if (path !== here.value.path) {
    history.replaceState({ y: scrollY }, ''); // for the way back
    back = 0;
    scrollTo(0, 0);
  }
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

/** A value of the query that must be one of some words. Another one counts as none, and is taken out of the address. */
export function useOneOf<T extends string>(name: string, known: readonly T[]): T | '' {
  const value = here.value.search.get(name), is = known.find((k) => k === value);
  useEffect(() => { if (value && !is) setQuery({ [name]: undefined }); }, [value]);
  return is ?? '';
}

let shown = location.pathname + location.search;
addEventListener('popstate', () => {
  if (location.pathname !== here.value.path && guard && !guard()) {
    history.pushState(null, '', shown); // stay
    return;
  }
  read();
  scrollBack(history.state?.y ?? 0);
});
here.subscribe(() => { shown = location.pathname + location.search; });

/** Calls f when somebody goes back or forward, which on a phone is how to close what lies over a screen. */
export function useBack(f: (() => void) | undefined) {
  const latest = useRef(f);
  latest.current = f;
  useEffect(() => {
    const back = () => latest.current?.();
    addEventListener('popstate', back);
    return () => removeEventListener('popstate', back);
  }, []);
}

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
