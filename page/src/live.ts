import { computed, signal } from '@preact/signals';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { all as pages, asProblem, call, get, me, unreachable, type Problem, type Answer } from './api';
import { openStream } from './stream';
import type { Page } from './types';

// How the page stays up to date. Screens say what they show and which changes concern it; where the news come from
// (a stream of events, or asking again) is decided here alone.

/** Whether the page follows what happens; one toggle for all of it. */
export const following = signal(localStorage.getItem('following') !== 'no');
export function setFollowing(on: boolean) {
  following.value = on;
  localStorage.setItem('following', on ? 'yes' : 'no');
  if (on) all();
}

/** Whether the stream of events is there. Without it we ask again every few seconds. */
export const streaming = signal(false);

export type Pace = 'live' | 'asking' | 'paused' | 'stale';
export const pace = computed<Pace>(() => (unreachable.value ? 'stale' : !following.value ? 'paused' : streaming.value ? 'live' : 'asking'));

/** What happened: the type of the event, its id of a job or a run, and all that it says. */
export interface News { type: string; job_id?: string; data: any }
const listeners = new Set<(news: News | null) => void>();

/** Calls f at each change, and with null when anything may have changed (after a gap). */
export function onNews(f: (news: News | null) => void) {
  listeners.add(f);
  return () => { listeners.delete(f); };
}
const all = () => listeners.forEach((f) => f(null));
const kinds = ['run', 'runs', 'job', 'pause', 'node', 'backfill', 'alert', 'change'];
export const tell = (news: News) => listeners.forEach((f) => f(news));

// The stream: opened while somebody is signed in, follows, and looks. What it cannot tell is asked for again.
let feed: (() => void) | null = null, retry = 0;
function stream() {
  const wanted = !!me.value && following.value && !document.hidden;
  clearTimeout(retry);
  if (wanted && !feed) {
    const heard = (kind: string) => (d: any) => tell({ type: kind, job_id: d.job_id, data: d.run ?? d });
    feed = openStream('/api/v1/events', {
      ...Object.fromEntries(kinds.map((kind) => [kind, heard(kind)])),
      hello: () => { streaming.value = true; if (unreachable.value) probe(); all(); },
      reload: all,
    }, (closed) => {
      streaming.value = false; // it connects again by itself, unless it was sent away
      probe();
      if (!closed) return;
      close();
      retry = window.setTimeout(stream, 10_000);
    });
  } else if (!wanted && feed) close();
}
function close() {
  feed?.();
  feed = null;
  streaming.value = false;
}
/** Finds out whether the node answers, and who we are to it: its answer says so to all. */
const probe = () => { call('/api/v1/me').catch(() => undefined); };
me.subscribe(stream);
following.subscribe(stream);
document.addEventListener('visibilitychange', stream);
addEventListener('pagehide', close); // a page that is kept for the way back holds no connection
addEventListener('pageshow', stream);
unreachable.subscribe((gone) => { if (gone) { close(); clearTimeout(retry); retry = window.setTimeout(stream, 3000); } });

/** One second after the other, while somebody looks. */
export const second = signal(0);
setInterval(() => { if (!document.hidden) second.value++; }, 1000);

document.addEventListener('visibilitychange', () => { if (!document.hidden && following.value) all(); });

interface Asking {
  every?: number; // milliseconds between two questions when there is no stream; 0: only when asked to
  on?: string[]; // beginnings of types of events that concern it
  job?: string; // only those of this job
  always?: boolean; // also while there is a stream: not all of it is told there
  read?: (path: string, signal: AbortSignal) => Promise<Answer<any>>; // how it is asked for, if not by one GET
}

/** Reads all pages of a list, up to a bound; whether there are more is told by next. */
export const upTo = (most: number) => async (path: string, signal: AbortSignal): Promise<Answer<any>> => {
  let more = false;
  const items = await pages(path, most, signal, (_, m) => { more = m; });
  return { data: { items, next: more || undefined }, etag: '' };
};

export interface Asked<T> {
  data?: T;
  etag: string;
  problem?: Problem; // of the last question
  loading: boolean; // there is no answer to this question yet
  reload: () => Promise<void>;
}

/** useGet asks for a path and keeps the answer up to date. An older answer stays while a newer one is awaited. */
export function useGet<T>(path: string | null, o: Asking = {}): Asked<T> {
  const [state, set] = useState<{ path: string | null; data?: T; etag: string; problem?: Problem }>({ path: null, etag: '' });
  const current = useRef<{ path: string | null; stop?: AbortController; soon?: number; busy: boolean; again: boolean; asked: number }>({ path: null, busy: false, again: false, asked: 0 });
  const every = o.every ?? 5000, read = useRef(o.read);
  read.current = o.read; // it may know more than the path, such as a range that ends now

  const reload = useCallback(async () => {
    const c = current.current;
    if (!c.path) return;
    if (c.busy) { c.again = true; return; }
    c.busy = true;
    const asked = c.path, stop = new AbortController();
    c.stop = stop;
    c.asked = performance.now();
    try {
      const { data, etag }: Answer<T> = await (read.current ? read.current(asked, stop.signal) : call<T>(asked, { signal: stop.signal }));
      if (c.path === asked && !stop.signal.aborted) set({ path: asked, data, etag });
    } catch (err) {
      if (c.path === asked && !stop.signal.aborted) {
        set((s) => ({ path: asked, data: s.path === asked ? s.data : undefined, etag: s.etag, problem: asProblem(err) }));
      }
    }
    if (c.stop !== stop) return;
    c.busy = false;
    if (c.again) { c.again = false; void reload(); }
  }, []);

  useEffect(() => {
    const c = current.current;
    c.stop?.abort();
    c.path = path;
    c.busy = c.again = false;
    if (!path) return;
    void reload();
    let timer = 0;
    const tick = () => {
      timer = window.setTimeout(() => {
        if (following.value && !document.hidden && (o.always || !streaming.value || unreachable.value)) void reload();
        tick();
      }, every * (0.9 + 0.2 * Math.random()));
    };
    if (every) tick();
    const off = onNews((news) => {
      if (!every || document.hidden) return;
      if (news && (!following.value || !o.on?.some((t) => news.type.startsWith(t)) || (o.job && news.job_id && news.job_id !== o.job))) return;
      c.soon ??= window.setTimeout(() => { c.soon = undefined; void reload(); }, Math.max(300, c.asked + 1500 - performance.now())); // many changes, one question
    });
    let told = false; // who is signed in is told at once, and that it was asked above
    const offMe = me.subscribe((m) => { if (told && m && c.path) void reload(); told = true; });
    return () => {
      off();
      offMe();
      clearTimeout(timer);
      clearTimeout(c.soon);
      c.soon = undefined;
      c.stop?.abort();
      c.path = null;
    };
  }, [path, every, o.job]);

  const fresh = state.path === path;
  return { data: fresh ? state.data : undefined, etag: fresh ? state.etag : '', problem: fresh ? state.problem : undefined, loading: !!path && !(fresh && (state.data !== undefined || state.problem)), reload };
}

/** Older items grow with each change at the beginning of a list. Above so many it begins anew. */
const mostKept = 2000;

export interface Paged<T> { items: T[]; data?: Page<T>; problem?: Problem; loading: boolean; reload: () => Promise<void>; more?: () => Promise<void>; renew: (f: (x: T) => T | null) => void }

/** usePages asks for the first page of a list, keeps it up to date, and has older items on demand. */
export function usePages<T>(path: string, key: (x: T) => string, o: Asking = {}): Paged<T> {
  const first = useGet<Page<T>>(path, o);
  const [older, setOlder] = useState<{ path: string; items: T[]; next?: string }>();
  useEffect(() => setOlder(undefined), [path]);
  const base = first.data?.items ?? [], seen = new Set(base.map(key));
  // What slides off the first page is kept as it was there last. If the page no longer meets what was loaded, what lies
  // between was never seen: it begins anew.
  useEffect(() => setOlder((k) => {
    if (k?.path !== path || !first.data) return k;
    let behind = k.items.length; // of what the page ends with
    while (behind > 0 && !seen.has(key(k.items[behind - 1]))) behind--;
    const rest = k.items.slice(behind);
    return first.data.next === undefined || behind === 0 || base.length + rest.length > mostKept ? undefined : { ...k, items: [...base, ...rest] };
  }), [first.data]);
  const kept = older?.path === path ? older : undefined, next = kept ? kept.next : first.data?.next;
  const more = next === undefined ? undefined : async () => {
    const page = await get<Page<T>>(`${path}${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(next)}`);
    setOlder((k) => (kept && k?.path !== path ? k : { path, items: [...(kept ? k!.items : base), ...page.items], next: page.next })); // unless it has begun anew meanwhile
  };
  const renew = useCallback((f: (x: T) => T | null) => setOlder((k) => (k?.items.some((x) => f(x) !== x) ? { ...k, items: k.items.flatMap((x) => f(x) ?? []) } : k)), []);
  return { items: [...base, ...(kept?.items.filter((x) => !seen.has(key(x))) ?? [])], data: first.data, problem: first.problem, loading: first.loading, reload: first.reload, more, renew };
}
