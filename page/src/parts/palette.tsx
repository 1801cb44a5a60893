import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, may, mayAnywhere, now, query } from '../api';
import { choose, lang, t, type Text } from '../i18n';
import { following, setFollowing } from '../live';
import { go, useBack } from '../router';
import { flipTheme } from '../theme';
import type { Job, Page, Run } from '../types';
import { askPause, killRun, pauseJob, resume, runNow } from './actions';
import { closeDialog, complain, say, show } from './basic';
import { Icon, type IconName } from './icon';
import { isoOf } from './ranges';

// Search, and the doing of things: pages, jobs by a few letters of their names, and verbs with a job ("run build").

interface Choice { key?: string; icon: IconName; text: string; more?: string; do: () => unknown }

export const openPalette = () => show(() => <Palette />);

function pages(): Choice[] {
  const to = (path: string) => () => go(path);
  return [
    ...(mayAnywhere('admin') ? [{ icon: 'plus' as const, text: t('New job'), do: to('/jobs/new') }, { icon: 'download' as const, text: t('Import jobs'), do: to('/jobs/import') }] : []),
    { icon: 'heat', text: t('Overview'), do: to('/') },
    { icon: 'jobs', text: t('Jobs'), do: to('/jobs') },
    { icon: 'warning', text: t('Failing jobs'), do: to('/jobs?show=failing') },
    { icon: 'runs', text: t('Runs'), do: to('/runs') },
    { icon: 'runs', text: t('Running now'), do: to('/runs?state=running') },
    { icon: 'upcoming', text: t('Upcoming'), do: to('/upcoming') },
    { icon: 'timeline', text: t('Timeline'), do: to('/timeline') },
    { icon: 'clock', text: t('Last night'), do: to('/timeline/slots') },
    { icon: 'heat', text: t('Heat map'), do: to('/timeline/week') },
    { icon: 'bell', text: t('Alerts'), do: to('/alerts') },
    { icon: 'cluster', text: t('Cluster'), do: to('/cluster') },
    { icon: 'activity', text: t('Audit'), do: to('/audit') },
    { icon: 'trash', text: t('Deleted jobs'), do: to('/audit?kind=job&action=delete') },
    { icon: 'settings', text: t('Settings'), do: to('/settings') },
    { icon: 'history', text: t('Retention'), do: to('/settings/retention') },
    { icon: 'pause', text: t('Pauses'), do: to('/settings/pauses') },
    { icon: 'upcoming', text: t('Calendars'), do: to('/settings/calendars') },
    { icon: 'jobs', text: t('Groups'), do: to('/settings/groups') },
    { icon: 'lock', text: t('Secrets'), do: to('/settings/secrets') },
    { icon: 'key', text: t('Tokens'), do: to('/settings/tokens') },
    { icon: 'moon', text: t('Switch between light and dark'), do: flipTheme },
    { icon: 'globe', text: lang.value === 'zh' ? 'English' : '中文', do: () => choose(lang.value === 'zh' ? 'en' : 'zh') },
    { icon: following.value ? 'pause' : 'play', text: following.value ? t('Turn off live updates') : t('Turn on live updates'), do: () => setFollowing(!following.value) },
    { icon: 'question', text: t('API reference'), do: () => location.assign('/docs') },
  ];
}

// Verbs

type Verb = 'run' | 'pause' | 'resume' | 'kill' | 'backfill' | 'why';
const verbText: Record<Verb, Text> = { run: 'Run now', pause: 'Pause', resume: 'Resume', kill: 'Kill', backfill: 'Backfill', why: 'Why?' };
const verbs = Object.keys(verbText) as Verb[];
const verbIcon: Record<Verb, IconName> = { run: 'bolt', pause: 'pause', resume: 'play', kill: 'stop', backfill: 'history', why: 'question' };

/** What can be done to a job, except to kill its runs, which are listed one by one. */
function doTo(verb: Exclude<Verb, 'kill'>, j: Job): Choice | undefined {
  const allowed = verb === 'why' || may('operator', j.app);
  const sensible = verb === 'pause' ? !j.paused : verb === 'resume' ? j.paused : verb === 'backfill' ? !j.at : true;
  if (!allowed || !sensible) return undefined;
  const work = {
    run: () => runNow(j, true), pause: () => pauseJob(j), resume: () => resume(j), why: () => go(`/jobs/${j.id}/why`),
    backfill: () => go(`/jobs/${j.id}/backfills${query({ from: isoOf(now() - 24 * 3600_000), to: isoOf(now()) })}`),
  };
  return { icon: verbIcon[verb], text: `${t(verbText[verb])}: ${j.name}`, more: j.app, do: work[verb] };
}

/** The verbs that a text may begin with, and what follows: "ru bu" is "run" with "bu". */
function verbsIn(text: string): { verbs: Verb[]; rest: string } {
  const [first = '', ...rest] = text.split(/[\s:：]+/);
  const found = first.length < 2 ? [] : verbs.filter((v) => v.startsWith(first) || t(verbText[v]).toLowerCase().startsWith(first));
  return { verbs: found, rest: rest.join(' ') };
}

/** How far a name is from a few letters of it, in their order; undefined if it does not have them. */
export function fuzzy(letters: string, name: string): number | undefined {
  const word = letters.replaceAll(' ', ''), low = name.toLowerCase(), whole = low.indexOf(letters);
  if (whole >= 0) return whole / 1000;
  let at = -1, gaps = 1;
  for (const c of word) {
    const next = low.indexOf(c, at + 1);
    if (next < 0) return undefined;
    gaps += at < 0 ? 0 : next - at - 1;
    at = next;
  }
  return gaps > 4 * word.length ? undefined : gaps; // letters from all over a long name are no match
}

const nearest = <T,>(list: T[], word: string, name: (x: T) => string) => list.map((x) => ({ x, d: fuzzy(word, name(x)) })).filter((m) => m.d !== undefined).sort((a, b) => a.d! - b.d!).map((m) => m.x);

// Jobs that were looked at last

const recentName = 'recent-jobs', mostRecent = 6;
const recentIDs = (): string[] => (localStorage.getItem(recentName) ?? '').split(',').filter((id) => /^\d+$/.test(id));

/** Remembers a job whose page was opened. */
export function visited(path: string) {
  const id = /^\/jobs\/(\d+)/.exec(path)?.[1];
  if (id) localStorage.setItem(recentName, [id, ...recentIDs().filter((x) => x !== id)].slice(0, mostRecent).join(','));
}

/** The jobs among which names are looked for: the first ones and the recent ones, and those that the server finds by the text. */
function useFound(word: string): { jobs: Job[]; recent: Job[] } {
  const [some, setSome] = useState<Job[]>([]), [found, setFound] = useState<Job[]>([]), [recent, setRecent] = useState<Job[]>([]);
  useEffect(() => {
    const stop = new AbortController(), ids = recentIDs();
    get<Page<Job>>('/api/v1/jobs?limit=200', stop.signal).then((p) => setSome(p.items), () => undefined);
    if (ids.length) get<Page<Job>>(`/api/v1/jobs${query({ ids: ids.join(',') })}`, stop.signal).then((p) => setRecent(ids.flatMap((id) => p.items.find((j) => j.id === id) ?? [])), () => undefined);
    return () => stop.abort();
  }, []);
  useEffect(() => {
    if (!word) return;
    const stop = new AbortController();
    const timer = setTimeout(() => get<Page<Job>>(`/api/v1/jobs${query({ name: word, limit: 8 })}`, stop.signal).then((p) => setFound(p.items), () => undefined), 120);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [word]);
  return { jobs: [...new Map([...found, ...recent, ...some].map((j) => [j.id, j])).values()], recent };
}

function useRunning(wanted: boolean): Run[] {
  const [runs, set] = useState<Run[]>([]);
  useEffect(() => { if (wanted) get<Page<Run>>('/api/v1/runs?state=running&limit=100').then((p) => set(p.items), () => undefined); }, [wanted]);
  return runs;
}

function Palette() {
  const [text, setText] = useState(''), [chosen, choose] = useState<string>();
  const word = text.trim().toLowerCase(), said = verbsIn(word);
  const { jobs, recent } = useFound(said.verbs.length && said.rest ? said.rest : word), running = useRunning(said.verbs.includes('kill'));
  const open = (j: Job, icon: IconName): Choice => ({ icon, text: j.name, more: j.app, do: () => go(`/jobs/${j.id}`) });

  const commanded = said.verbs.flatMap((v): Choice[] => {
    if (v === 'kill') return nearest(running.filter((r) => may('operator', r.app)), said.rest, (r) => `${r.app}/${r.job}`).slice(0, 8).map((r) => ({ key: r.id, icon: verbIcon.kill, text: `${t('Kill')}: ${r.job}`, more: `${r.app} · ${r.node}`, do: () => killRun(r, () => undefined) }));
    const apps = v !== 'pause' ? [] : nearest([...new Set(jobs.map((j) => j.app))].filter((app) => may('operator', app)), said.rest, (app) => app).filter((app) => app.toLowerCase().startsWith(said.rest));
    return [
      ...(said.rest ? apps.slice(0, 3) : []).map((app): Choice => ({ icon: 'pause', text: t('Pause the app {app}', { app }), do: () => askPause(t('Pause the app {app}', { app }), `/api/v1/apps/${encodeURIComponent(app)}/pause`, () => say(t('The app {app} is paused', { app }))) })),
      ...nearest(jobs, said.rest, (j) => `${j.app}/${j.name}`).flatMap((j) => doTo(v, j) ?? []).slice(0, 8),
    ];
  });
  const named = word ? nearest(jobs, word, (j) => (word.includes('/') ? `${j.app}/${j.name}` : j.name)).slice(0, 8) : [];
  const choices: Choice[] = [
    ...(/^[1-9]\d{9,18}$/.test(word) ? [{ icon: 'runs' as const, text: word, more: t('Run'), do: () => go(`/runs/${word}`) }] : []),
    ...(word ? [] : recent.map((j) => open(j, 'history'))),
    ...pages().filter((c) => c.text.toLowerCase().includes(word)),
    ...(said.rest || !named.length ? commanded : []),
    ...named.map((j) => open(j, 'clock')),
    ...(said.rest || !named.length ? [] : commanded),
    ...named.slice(0, 1).flatMap((j) => verbs.flatMap((v) => (v === 'kill' || said.verbs.length ? undefined : doTo(v, j)) ?? [])), // what can be done to the nearest one
  ];

  // Answers that come later move the choices: what was highlighted stays so.
  const keyOf = (c: Choice) => c.key ?? `${c.icon} ${c.text} ${c.more ?? ''}`, at = Math.max(0, choices.findIndex((c) => keyOf(c) === chosen));
  const pick = (c?: Choice) => {
    if (!c) return;
    closeDialog();
    Promise.resolve().then(c.do).catch(complain);
  };
  const key = (e: KeyboardEvent) => {
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      e.preventDefault();
      const next = (at + (e.key === 'ArrowDown' ? 1 : choices.length - 1)) % Math.max(1, choices.length);
      if (choices[next]) choose(keyOf(choices[next]));
      document.getElementById(`choice-${next}`)?.scrollIntoView({ block: 'nearest' });
    } else if (e.key === 'Enter' && !e.isComposing) pick(choices[at]);
  };
  return (
    <Plain>
      <input autoFocus role="combobox" aria-expanded="true" aria-controls="choices" aria-activedescendant={choices.length ? `choice-${at}` : undefined} aria-label={t('Search')}
        placeholder={t('Job, page or run ID, or "run build"…')} value={text} onInput={(e) => { setText(e.currentTarget.value); choose(undefined); }} onKeyDown={key} />
      <ul id="choices" role="listbox" aria-label={t('Search')}>
        {choices.map((c, i) => (
          <li key={i} id={`choice-${i}`} role="option" aria-selected={i === at} onMouseMove={() => i !== at && choose(keyOf(c))} onClick={() => pick(c)}>
            <Icon name={c.icon} /><bdi class="cut">{c.text}</bdi>{c.more && <small>{c.more}</small>}
          </li>
        ))}
        {choices.length === 0 && <li role="option" aria-selected="false" class="faint">{t('No matches')}</li>}
      </ul>
    </Plain>
  );
}

function Plain({ children }: { children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  useBack(closeDialog);
  useEffect(() => {
    const back = document.activeElement as HTMLElement | null;
    ref.current!.showModal();
    return () => { ref.current?.close(); back?.focus?.(); };
  }, []);
  return <dialog ref={ref} class="dialog palette" aria-label={t('Search')} onCancel={(e) => { e.preventDefault(); closeDialog(); }} onMouseDown={(e) => { if (e.target === ref.current) closeDialog(); }}><div class="box">{children}</div></dialog>;
}
