import { signal } from '@preact/signals';
import { lang, t } from './i18n';
import type { Cluster, Me, Page, Message as Sentence } from './types';

/** What is wrong with a field. */
export type FieldProblem = Sentence & { field: string };

/** What an error answer says (RFC 9457), or what we say when no answer came. */
export class Problem extends Error {
  constructor(
    readonly title: string,
    readonly detail: string,
    readonly status: number, // 0: no answer came
    readonly errors: FieldProblem[] = [],
    readonly type = '',
    readonly version?: number,
    readonly requestID?: string,
  ) {
    super(detail || title);
  }
}

/** What anything that was thrown is shown as. */
export const asProblem = (err: unknown) => (err instanceof Problem ? err : new Problem(t('Something went wrong on this page'), String((err as Error)?.message ?? err), 1));

export const noResponse = () => new Problem('No response', `${location.host} is not responding.`, 0);

/** Who is signed in: undefined while nobody knows, null for nobody. */
export const me = signal<Me | null | undefined>(undefined);

/** When an answer came last, and whether the last try failed: what is shown may be old then. */
export const unreachable = signal(false);

export interface Answer<T> { data: T; etag: string }
interface Options { method?: string; body?: unknown; headers?: Record<string, string>; signal?: AbortSignal }

const timeout = 25_000;

// A sign-in is two values, and neither counts without the other: a cookie, which no script can read but which the browser
// sends to every port of this host, and a key, which only this origin, port included, can read. The key is in
// localStorage and not in sessionStorage, so that a second tab is signed in, too: the tabs share the cookie.
const keyName = 'login-key';
const loginKey = () => localStorage.getItem(keyName) ?? '';
const loginHeader = 'X-Gocrontab-Login';

/** Whether somebody has signed in here. The node may have ended it since. */
export const hasSignIn = () => loginKey() !== '';

/** The headers without which the cookie is worth nothing. */
export const credentials = (): Record<string, string> => (loginKey() ? { [loginHeader]: loginKey() } : {});

/** Remembers a sign-in, and who is signed in by it. */
export async function signedIn(login: { login_key: string }) {
  localStorage.setItem(keyName, login.login_key);
  await whoAmI();
}

export async function signOut() {
  await post('/api/v1/logout');
  localStorage.removeItem(keyName);
}

/** Forgets a key that lets nobody in, unless another tab has a newer one by now. */
function forget(key: string) {
  if (key && key === loginKey()) localStorage.removeItem(keyName);
}

addEventListener('storage', (e) => { if (e.key === keyName) void whoAmI().catch(() => undefined); }); // another tab signed in or out

/** A sign-in says by itself who asks, and whatever it is answered ends no other one. */
const signsIn = (path: string) => /^\/api\/v1\/login($|[/?])/.test(path);

export async function call<T>(path: string, o: Options = {}): Promise<Answer<T>> {
  const method = o.method ?? 'GET';
  const login = signsIn(path) ? {} : credentials();
  const headers: Record<string, string> = { Accept: 'application/json', 'Accept-Language': lang.value, ...login, ...o.headers };
  if (o.body !== undefined) headers['Content-Type'] ??= 'application/json';
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), timeout);
  const away = () => stop.abort();
  if (o.signal?.aborted) stop.abort();
  o.signal?.addEventListener('abort', away);
  let response: Response, text: string;
  try {
    response = await fetch(path, {
      method, headers, signal: stop.signal, credentials: 'same-origin',
      body: o.body === undefined ? undefined : typeof o.body === 'string' ? o.body : JSON.stringify(o.body),
    });
    text = await response.text();
  } catch (err) {
    if (o.signal?.aborted) throw err;
    unreachable.value = true;
    throw noResponse();
  } finally {
    clearTimeout(timer);
    o.signal?.removeEventListener('abort', away);
  }
  unreachable.value = false;
  if (response.ok) {
    if (me.value === null && path !== '/api/v1/me' && !signsIn(path)) void whoAmI().catch(() => undefined); // another tab has signed in
    return { data: (text === '' ? undefined : isJSON(response) ? JSON.parse(text) : text) as T, etag: response.headers.get('ETag') ?? '' };
  }
  if (response.status === 401 && !signsIn(path)) dropSignIn(login[loginHeader]);
  throw problemOf(response, text);
}

/** The node does not know the sign-in with which it was asked. */
function dropSignIn(key: string | undefined) {
  forget(key ?? '');
  if (me.value) me.value = null; // signed out while something was open: it stays open
}

function problemOf(response: Response, text: string): Problem {
  let p: Record<string, any> = {};
  try { p = JSON.parse(text); } catch { /* something between us and the node has answered */ }
  return new Problem(p.title ?? `HTTP ${response.status}`, p.detail ?? '', response.status, p.errors ?? [], p.type ?? '', p.version, p.request_id);
}

/** Loads the page again if its node responds. Otherwise what is shown stays, and the banner offers other nodes. */
export async function reloadIfReachable() {
  const responds = await fetch('/healthz', { cache: 'no-store', signal: AbortSignal.timeout(5000) }).then((r) => r.ok, () => false);
  if (responds) location.reload();
  else unreachable.value = true;
  return responds;
}

/** Has the browser save what a path answers. A link cannot do it: it does not send the key of the sign-in. */
export async function download(path: string, name: string) {
  const login = credentials();
  const response = await fetch(path, { headers: { 'Accept-Language': lang.value, ...login }, credentials: 'same-origin' }).catch(() => {
    unreachable.value = true;
    throw noResponse();
  });
  if (!response.ok) {
    if (response.status === 401) dropSignIn(login[loginHeader]);
    throw problemOf(response, await response.text());
  }
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // the browser has begun to save it by then
}

const isJSON = (r: Response) => /[/+]json\b/.test(r.headers.get('Content-Type') ?? '');

export const get = async <T>(path: string, signal?: AbortSignal) => (await call<T>(path, { signal })).data;
export const post = async <T>(path: string, body: unknown = {}, headers?: Record<string, string>) =>
  (await call<T>(path, { method: 'POST', body, headers })).data;

/** A key with which a request that was answered by nobody may be sent again. */
export const onceKey = () => ({ 'Idempotency-Key': crypto.getRandomValues(new Uint32Array(4)).join('-') });

/** All pages of a list, up to a bound. */
export async function all<T>(path: string, most: number, signal?: AbortSignal, some?: (items: T[], more: boolean) => void): Promise<T[]> {
  const items: T[] = [];
  for (let cursor = ''; ;) {
    const sep = path.includes('?') ? '&' : '?';
    const page = await get<Page<T>>(`${path}${sep}limit=200${cursor && '&cursor=' + encodeURIComponent(cursor)}`, signal);
    items.push(...page.items);
    const more = page.next !== undefined && items.length < most;
    some?.(items, page.next !== undefined);
    if (!more) return items;
    cursor = page.next!;
  }
}

export const query = (values: Record<string, string | number | boolean | undefined>) => {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(values)) if (v !== undefined && v !== '' && v !== false) q.set(k, String(v));
  const text = q.toString();
  return text && '?' + text;
};

// The cluster's clock is MySQL's. The browser's may be wrong by hours, and so may be that of the node, or of a proxy before
// it, and all that is shown ("in 5 s") is about the cluster's. Each answer about the cluster says how late it was at some
// instant between the question and the answer: that bounds how far the clocks differ, and many answers bound it closely.
let least = -Infinity, most = Infinity;

/** What there is in the cluster. Whoever asks learns its clock. */
export async function askCluster(): Promise<Cluster> {
  const sent = Date.now(), c = await get<Cluster>('/api/v1/cluster');
  learnClock(Date.parse(c.now), sent, Date.now());
  return c;
}

function learnClock(at: number, sent: number, received: number) {
  if (Number.isNaN(at)) return;
  let low = at - received, high = at + 1 - sent; // it was cut to milliseconds
  if (low <= most && high >= least) { // it agrees with what we know
    low = Math.max(low, least);
    high = Math.min(high, most);
  }
  least = low - 1; // clocks drift: knowledge fades
  most = high + 1;
}

/** The cluster's time in milliseconds. */
export const now = () => Date.now() + (Number.isFinite(least) ? (least + most) / 2 : 0);
/** By how much the browser's clock is off, in milliseconds. */
export const clockOff = () => (Number.isFinite(least) ? -(least + most) / 2 : 0);

// Whoever was signed in last: a sign-in that ends must not take away a screen on which something was typed.
let was: Me | undefined;
me.subscribe((m) => { if (m) was = m; });

const rank = { viewer: 0, operator: 1, admin: 2 };
/** Whether who is signed in has a role, for an app or for the whole cluster. */
export function may(role: 'operator' | 'admin', app?: string): boolean {
  const m = me.value ?? was;
  if (!m) return false;
  return m.grants.some((g) => rank[g.role] >= rank[role] && (!g.apps || (app !== undefined && g.apps.includes(app))));
}
/** Whether who is signed in has a role anywhere. */
export function mayAnywhere(role: 'operator' | 'admin'): boolean {
  const m = me.value ?? was;
  return !!m && rank[m.role] >= rank[role];
}

export async function whoAmI() {
  try {
    const clock = Number.isFinite(least) ? undefined : askCluster().catch(() => undefined); // screens count time from the beginning
    const m = await get<Me>('/api/v1/me');
    await clock;
    me.value = m;
  } catch (err) {
    if (err instanceof Problem && err.status === 401) me.value = null;
    else throw err;
  }
}
