import { signal } from '@preact/signals';
import { Component, type ComponentChildren, type JSX } from 'preact';
import { Suspense, lazy } from 'preact/compat';
import { useEffect, useRef, useState } from 'preact/hooks';
import { askCluster, clockOff, get, hasSignIn, me, noResponse, now, post, Problem, reloadIfReachable, signedIn, signOut, unreachable, whoAmI } from './api';
import { choose, lang, t, type Text } from './i18n';
import { following, pace, setFollowing } from './live';
import { Button, complain, dialog, Dialog, Empty, Loading, ProblemBox, Toasts } from './parts/basic';
import { counts, readCounts } from './parts/counts';
import { Icon, Mark, type IconName } from './parts/icon';
import { followKeys } from './parts/keys';
import { nav, type NavItem } from './parts/nav';
import { openPalette, visited } from './parts/palette';
import { go, here, Link } from './router';
import { Jobs } from './screens/jobs';
import { Overview } from './screens/overview';
import { flipTheme, theme } from './theme';
import { coarse, inUTC, myZone } from './time';
import type { Cluster, Pause } from './types';

// What is loaded when it is first shown, or when the page has nothing else to do: the node may be gone by then.
const parts = {
  job: () => import('./screens/job'), editor: () => import('./screens/editor'), import: () => import('./screens/import'),
  runs: () => import('./screens/runs'), run: () => import('./screens/run'), cluster: () => import('./screens/cluster'),
  activity: () => import('./screens/activity'), alerts: () => import('./screens/alerts'), upcoming: () => import('./screens/upcoming'),
  settings: () => import('./screens/settings'), timeline: () => import('./screens/timeline'), plot: () => import('./parts/plot'),
};
const JobScreen = lazy(() => parts.job().then((m) => m.JobScreen));
const Editor = lazy(() => parts.editor().then((m) => m.Editor));
const Import = lazy(() => parts.import().then((m) => m.Import));
const Runs = lazy(() => parts.runs().then((m) => m.Runs));
const RunScreen = lazy(() => parts.run().then((m) => m.RunScreen));
const ClusterScreen = lazy(() => parts.cluster().then((m) => m.ClusterScreen));
const Audit = lazy(() => parts.activity().then((m) => m.Audit));
const Alerts = lazy(() => parts.alerts().then((m) => m.Alerts));
const Upcoming = lazy(() => parts.upcoming().then((m) => m.Upcoming));
const Settings = lazy(() => parts.settings().then((m) => m.Settings));
const Timeline = lazy(() => parts.timeline().then((m) => m.Timeline));

/** What there is in the cluster, to be told apart from what a screen shows. */
const cluster = signal<Cluster | undefined>(undefined);
const pauses = signal<Pause[]>([]);

function screen(path: string): JSX.Element {
  const [, first = '', second, third] = path.split('/').map(decode);
  switch (first) {
    case '': return <Overview />;
    case 'jobs':
      if (second === 'new' && !third) return <Editor key={`new-${here.value.search.get('from')}`} />;
      if (second === 'import' && !third) return <Import />;
      if (second && third === 'edit') return <Editor key={second} id={second} />;
      if (second) return <JobScreen key={second} id={second} tab={third ?? 'history'} />;
      return <Jobs />;
    case 'runs': return second ? <RunScreen key={second} id={second} /> : <Runs />;
    case 'upcoming': return <Upcoming />;
    case 'timeline': return <Timeline tab={second ?? 'runs'} />;
    case 'cluster': return <ClusterScreen />;
    case 'alerts': return <Alerts item={second} />;
    case 'audit': return <Audit />;
    case 'settings': return <Settings tab={second} item={third} />;
    case 'activity': return <Moved to={movedTo(second, third)} />;
  }
  return <Empty icon="question" title={t('Page not found')}><Link class="button" to="/">{t('Overview')}</Link></Empty>;
}

/** Where the parts of "Activity" are now, which links in old messages and bookmarks still name. */
function movedTo(tab = 'audit', item?: string): string {
  const at = tab === 'audit' || tab === 'alerts' ? `/${tab}` : `/settings/${tab}`;
  return at + (item ? `/${encodeURIComponent(item)}` : '');
}

function Moved({ to }: { to: string }) {
  useEffect(() => go(to + location.search + location.hash, 'replace'), [to]);
  return <Loading />;
}

const decode = (s: string) => { try { return decodeURIComponent(s); } catch { return s; } };

export function App() {
  const [menu, setMenu] = useState(false);
  const [failed, setFailed] = useState<Problem>();
  const [was, setWas] = useState(false); // somebody was signed in: what is open stays open

  useEffect(() => {
    const ask = () => (here.value.path === backFromProvider ? fromProvider() : whoAmI()).then(() => setFailed(undefined), (err) => { setFailed(err); if (me.value === undefined) setTimeout(ask, 3000); });
    void ask();
    const offKeys = followKeys();
    const looks = () => { if (!document.hidden && me.value === null) void whoAmI().catch(() => undefined); }; // perhaps signed in elsewhere
    document.addEventListener('visibilitychange', looks);
    return () => { offKeys(); document.removeEventListener('visibilitychange', looks); };
  }, []);
  useEffect(() => {
    if (!me.value) return;
    setWas(true);
    const prefetch = setTimeout(() => { for (const load of Object.values(parts)) load().catch(() => undefined); }, 1000);
    const to = sessionStorage.getItem(leftFor);
    sessionStorage.removeItem(leftFor);
    if (here.value.path === '/' && to && /^\/[^/\\]/.test(to)) go(to, 'replace'); // a path of this page and nothing else
    return () => clearTimeout(prefetch);
  }, [me.value]);
  const came = useRef(here.value.path);
  useEffect(() => {
    setMenu(false);
    visited(here.value.path);
    if (came.current === here.value.path) return;
    came.current = here.value.path; // who reads by ear or by keyboard goes on at the beginning of the new screen
    document.getElementById('main')?.focus({ preventScroll: true });
  }, [here.value.path]);
  useEffect(() => {
    if (!me.value) return;
    const look = async () => {
      if (document.hidden || !me.value) return;
      try {
        await Promise.all([askCluster().then((c) => { cluster.value = c; }), readCounts()]);
        pauses.value = (await get<{ items: Pause[] }>('/api/v1/pauses')).items.filter((p) => p.scope !== 'job' && !p.ended);
      } catch { /* the banner says so */ }
    };
    void look();
    const timer = setInterval(look, 10_000);
    return () => clearInterval(timer);
  }, [!!me.value]);

  if (me.value === undefined && (failed || !hasSignIn())) return <div class="entry">{failed ? <div class="card"><Brand /><ProblemBox problem={failed} /></div> : <Loading rows={2} />}</div>;
  if (me.value === null && !was) return <div class="entry"><SignIn /><Toasts /></div>;

  const path = here.value.path, active = '/' + path.split('/')[1];
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById('main')?.focus(); }}>{t('Skip to content')}</a>
      <div class="topbar">
        <Button look="quiet" icon="menu" aria-label={t('Menu')} aria-expanded={menu} work={() => setMenu(!menu)} />
        <Brand />
        <PaceDot />
        <Button look="quiet" icon="search" aria-label={t('Search')} work={openPalette} />
      </div>
      {menu && <button class="shade" aria-label={t('Close')} onClick={() => setMenu(false)} />}
      <aside class={`side ${menu ? 'open' : ''}`}>
        <Brand />
        <button class="item find" onClick={openPalette}><Icon name="search" />{t('Search')}<kbd>/</kbd></button>
        <nav aria-label={t('Navigation')}>
          {nav.map((n) => <NavLink key={n.to} item={n} current={active === n.to} />)}
        </nav>
        <Foot />
      </aside>
      <main id="main" tabIndex={-1}>
        <Banners />
        <Boundary key={path.split('/').slice(0, 3).join('/')}>{me.value === undefined ? <Loading rows={8} /> : <Suspense fallback={<Loading />}>{screen(path)}</Suspense>}</Boundary>
      </main>
      {dialog.value && <Over f={dialog.value} />}
      {me.value === null && <Dialog title={t('You were signed out')}><SignIn over /></Dialog>}
      <Toasts />
    </div>
  );
}

/** One screen that breaks must not take the others along. */
class Boundary extends Component<{ children: ComponentChildren }, { error?: Error }> {
  static getDerivedStateFromError(error: Error) { return { error }; }
  render() {
    const e = this.state.error;
    if (!e) return this.props.children;
    const problem = unreachable.value ? noResponse() : new Problem(t('Something went wrong on this page'), String(e.message ?? e), 1);
    return <ProblemBox problem={problem} again={reloadIfReachable} />;
  }
}

const Over = ({ f }: { f: () => JSX.Element }) => f();

function NavLink({ item: n, current }: { item: NavItem; current: boolean }) {
  const c = counts.value, b = c && n.badge?.(c);
  return (
    <Link class="item" to={n.to} aria-current={current ? 'page' : undefined}>
      <Icon name={n.icon as IconName} />{t(n.text)}
      {b && b.n > 0 && <span class={`tail n ${b.tone}`} title={t(b.text, { n: b.n })}>{b.n > 999 ? '999+' : b.n}{b.n <= 999 && b.atLeast && '+'}<span class="unseen"> {t(b.text, { n: b.n })}</span></span>}
    </Link>
  );
}

const Brand = () => <Link class="brand" to="/"><Mark />go-crontab</Link>;

const paceText: Record<string, Text> = { live: 'Live', asking: 'Live', paused: 'Paused', stale: 'No response' };
const PaceDot = () => <span class={`pace ${pace.value}`} role="img" aria-label={t(paceText[pace.value])} title={t(paceText[pace.value])} />;

function Foot() {
  const m = me.value;
  return (
    <div class="foot">
      <button class="item" aria-pressed={following.value} onClick={() => setFollowing(!following.value)} title={t('Turn live updates on or off')}>
        <PaceDot />{t(paceText[pace.value])}<span class="tail"><Icon name={following.value ? 'pause' : 'play'} /></span>
      </button>
      <button class="item" onClick={flipTheme}><Icon name={theme.value === 'dark' ? 'sun' : 'moon'} />{theme.value === 'dark' ? t('Light') : t('Dark')}</button>
      <button class="item" lang={lang.value === 'zh' ? 'en' : 'zh-CN'} onClick={() => choose(lang.value === 'zh' ? 'en' : 'zh')}><Icon name="globe" />{lang.value === 'zh' ? 'English' : '中文'}</button>
      <button class="item" title={t('Switch the time zone of this page')} onClick={() => { inUTC.value = !inUTC.value; localStorage.setItem('utc', inUTC.value ? 'yes' : 'no'); }}>
        <Icon name="clock" /><span class="cut">{inUTC.value ? 'UTC' : myZone}</span>
      </button>
      <a class="item" href="/docs"><Icon name="question" />{t('API reference')}</a>
      {m && (
        <div class="who">
          <div><div class="cut"><b>{m.name}</b></div><div class="faint small cut">{t(m.role)}{m.apps ? `: ${m.apps.join(', ')}` : ''}</div></div>
          <Button look="quiet" icon="out" aria-label={t('Sign out')} title={t('Sign out')} work={async () => { await signOut(); location.assign('/'); }} />
        </div>
      )}
    </div>
  );
}

function Banners() {
  const off = clockOff();
  const others = cluster.value?.sessions.filter((s) => s.address && hostOf(s.address) !== location.host) ?? [];
  return (
    <>
      {unreachable.value && (
        <div class="banner" role="alert">
          <Icon name="warning" />
          <span>{t('{host} is not responding, so this page may be out of date. Retrying…', { host: location.host })}</span>
          {others.map((s) => <a key={s.id} href={s.address + here.value.path + (here.value.search.size ? `?${here.value.search}` : '')}>{t('Continue on {node}', { node: s.node })}</a>)}
        </div>
      )}
      {pauses.value.map((p) => (
        <div key={p.scope + p.app} class="banner warn" role="status">
          <Icon name="pause" />
          <span>
            <b>{p.scope === 'cluster' ? t('The whole cluster is paused') : t('The app {app} is paused', { app: p.app ?? '' })}</b>
            {p.reason && <>: <bdi>{p.reason}</bdi></>}{p.by && ` (${p.by})`}
          </span>
          <Link to="/settings/pauses">{t('Show pauses')}</Link>
        </div>
      ))}
      {Math.abs(off) > 30_000 && (
        <div class="banner warn" role="status"><Icon name="clock" />{t("This browser's clock is off by {span}. Times on this page follow the cluster's clock, which says {time} UTC.", { span: coarse(Math.abs(off)), time: new Date(now()).toISOString().slice(11, 16) })}</div>
      )}
    </>
  );
}
/** Where one was when one left for the identity provider, which sends everybody back to one address. */
const leftFor = 'left-for-sign-in';

// A sign-in by the identity provider is begun and ended by this page. What it was begun with is kept in the storage of
// this tab, which no other origin, and no other port, can read or write: nobody can have a page end what it did not begin.
const flowName = 'sign-in-flow', backFromProvider = '/api/v1/login/oidc/callback';

async function toProvider() {
  sessionStorage.setItem(leftFor, location.pathname + location.search);
  const { target, flow } = await post<{ target: string; flow: string }>('/api/v1/login/oidc');
  sessionStorage.setItem(flowName, flow);
  location.assign(target);
}

/** Why the last sign-in by the provider did not come to its end. */
const notVouched = signal<Problem | undefined>(undefined);

/** Ends the sign-in with what the provider added to the address, and takes that out of the address. */
async function fromProvider() {
  const q = new URLSearchParams(location.search), flow = sessionStorage.getItem(flowName) ?? '';
  const state = q.get('state') ?? '', code = q.get('code') ?? undefined, error = q.get('error') ?? undefined;
  go('/', 'replace');
  if (flow.startsWith(state + '.')) sessionStorage.removeItem(flowName);
  try {
    await signedIn(await post<{ login_key: string }>(backFromProvider, { flow, state, code, error }));
  } catch (err) {
    if (!(err instanceof Problem)) throw err;
    notVouched.value = err;
    await whoAmI(); // an earlier sign-in still holds
  }
}

const hostOf = (address: string) => { try { return new URL(address).host; } catch { return ''; } };

function SignIn({ over }: { over?: boolean }) {
  const [token, setToken] = useState('');
  const [problem, setProblem] = useState<Problem | undefined>(notVouched.value);
  const [oidc, setOIDC] = useState<string>();
  const [busy, setBusy] = useState(false);
  useEffect(() => { get<{ oidc?: string }>('/api/v1/login').then((w) => setOIDC(w.oidc), () => undefined); }, []);
  const submit = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    try {
      await signedIn(await post<{ login_key: string }>('/api/v1/login', { token: token.trim() }));
    } catch (err) {
      if (!(err instanceof Problem)) complain(err);
      else setProblem(err.status === 401 ? new Problem(t('Invalid token'), t('Check that you copied all of it.'), 1) : err);
    }
    setBusy(false);
  };
  return (
    <form class={over ? 'body stack' : 'card'} onSubmit={submit} aria-label={t('Sign in')}>
      {!over && <div class="row"><div class="grow"><Brand /></div>
        <button type="button" class="button quiet" lang={lang.value === 'zh' ? 'en' : 'zh-CN'} onClick={() => choose(lang.value === 'zh' ? 'en' : 'zh')}>{lang.value === 'zh' ? 'English' : '中文'}</button>
        <Button look="quiet" icon={theme.value === 'dark' ? 'sun' : 'moon'} aria-label={theme.value === 'dark' ? t('Light') : t('Dark')} work={flipTheme} /></div>}
      {over && <p>{t('Sign in again to continue. Nothing you typed is lost.')}</p>}
      <div class={`field ${problem ? 'wrong' : ''}`}>
        <label for="token">{t('Token')}</label>
        <input id="token" type="password" autocomplete="off" spellcheck={false} required autoFocus value={token} onInput={(e) => { setToken(e.currentTarget.value); setProblem(undefined); }} aria-describedby="token-hint" />
        <p class="hint" id="token-hint">{t('"go-crontab dev" prints where its token is. Admins create tokens with "go-crontab token create".')}</p>
      </div>
      {problem && <ProblemBox problem={problem} />}
      <div class="row">
        <button class="button primary" disabled={busy || !token.trim()}><Icon name="key" />{t('Sign in')}</button>
        {oidc === location.origin ? <Button work={toProvider}>{t('Sign in with the identity provider')}</Button>
          : oidc && <a class="button" href={oidc + location.pathname + location.search}>{t('Sign in with the identity provider')}</a>}
        {!over && <a class="faint small" href="/docs">{t('API reference')}</a>}
      </div>
    </form>
  );
}
