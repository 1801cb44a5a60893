import { memo } from 'preact/compat';
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { asProblem, get, may, mayAnywhere, now, onceKey, post, Problem, query } from '../api';
import { lang, sentence, t, type Text } from '../i18n';
import { following, onNews, streaming } from '../live';
import { AppActions, askPause, jobActions, pauseJob, resume, resumeApp, runNow } from '../parts/actions';
import { Ago, ask, Bars, Button, complain, Empty, Head, HealthBadge, Loading, Notice, OutcomeBadge, pausedBy, ProblemBox, say, StatusBadge, Until, what, when } from '../parts/basic';
import { apps as knownApps, askApps, learnApps } from '../parts/apps';
import { Icon } from '../parts/icon';
import { ask as renew, follow, isInSight, lastRuns, put, want } from '../parts/outcomes';
import { go, here, Link, setQuery, useOneOf } from '../router';
import { ms, zoneShown } from '../time';
import type { Health, Job, Outcome, Page, Run, Message as Sentence } from '../types';

const most = 20_000; // jobs that are listed at once; of more, the server looks for those of a name

// What a row needs of a job: ten thousand of them are held.
const slim = (j: Job): Job => ({ ...pick(j), command: j.command?.slice(0, 160) }) as Job;
const pick = ({ id, app, name, description, owner, labels, schedule, schedules, every, at, manual, params, timezone, command, http, handler, paused, pause, status, health, error, version, next_due, last_due, group, waiting }: Job) =>
  ({ id, app, name, description, owner, labels, schedule, schedules, every, at, manual, params, timezone, command, http: http && { method: http.method, url: http.url }, handler, paused, pause, status, health, error, version, next_due, last_due, group, waiting });

// The list is kept in the order of names, which is dear to work out: ten thousand of them take longer than a frame. Other
// orders are made from it by numbers alone.
const collator = new Intl.Collator(undefined, { numeric: true });
const byName = (a: Job, b: Job) => (a.app === b.app ? collator.compare(a.name, b.name) : collator.compare(a.app, b.app));

/** Two lists in the order of names as one. */
function merged(a: Job[], b: Job[]): Job[] {
  if (!a.length || !b.length) return a.length ? a : b;
  const out: Job[] = [];
  for (let i = 0, k = 0; i < a.length || k < b.length;) out.push(k === b.length || (i < a.length && byName(a[i], b[k]) <= 0) ? a[i++] : b[k++]);
  return out;
}

/** The list with some jobs as they are now, null for those that are gone. */
function renewed(list: Job[], are: Map<string, Job | null>): Job[] {
  let moved = false;
  const out: Job[] = [];
  for (const j of list) {
    const is = are.get(j.id);
    if (is === null) continue;
    moved ||= !!is && (is.name !== j.name || is.app !== j.app);
    out.push(is ?? j);
  }
  return moved ? out.sort(byName) : out;
}

const filterText: Record<'label' | 'owner' | 'group' | 'calendar', Text> = { label: 'Label', owner: 'Owner', group: 'Group', calendar: 'Calendar' };

const sorts = ['name', 'due', 'status'] as const;
type Sort = (typeof sorts)[number];

const wrong = new Set<Outcome>(['failed', 'timed_out', 'lost', 'missed']);
/** Whether the end of a run says something else of its job than the list does. */
const surprises = (j: Job, r: Run) => r.state === 'ended' && (r.outcome === 'succeeded' ? ['failing', 'unstable'].includes(j.health?.code ?? '') : wrong.has(r.outcome!) && j.health?.code !== 'failing');

// What health comes first in the list, and what the chips count. What runs or is well has one place: rows would jump about.
const ranks: Record<Health['code'], number> = { broken: 0, failing: 1, late: 2, waiting: 3, unstable: 4, running: 5, ok: 5, never: 5, paused: 6 };
const rankOf = (j: Job) => (j.status === 'finished' && !['failing', 'broken'].includes(j.health?.code ?? '') ? 7 : ranks[j.health?.code ?? 'ok']);
/** Whether a job belongs to the chip of a name. A job may belong to several. */
const belongs: Record<string, (j: Job) => boolean> = {
  failing: (j) => j.health?.code === 'failing', unstable: (j) => j.health?.code === 'unstable', error: (j) => j.status === 'error', late: (j) => j.health?.code === 'late', waiting: (j) => !!j.waiting?.length,
  running: (j) => j.health?.code === 'running', paused: (j) => j.status === 'paused', finished: (j) => j.status === 'finished',
};

/** What was there when the list was left, for the way back to it: it is shown until it has been read again. */
let left: { path: string; jobs?: Job[]; more: boolean; picked: Set<string>; many: string } = { path: '', more: false, picked: new Set(), many: '' };

/** The jobs of a path, kept up to date. */
function useJobs(path: string) {
  const [jobs, set] = useState<Job[] | undefined>(left.path === path ? left.jobs : undefined);
  const [more, setMore] = useState(left.path === path && left.more); // there are more of them
  const [problem, setProblem] = useState<Problem>();
  const current = useRef(jobs), of = useRef(path), others = useRef(more);
  const work = useRef<{ load: () => Promise<void> }>();
  const setJobs = (list: Job[] | undefined) => set((current.current = list));

  useEffect(() => {
    let stop = new AbortController(), loading = false, pages = 0, took = 0, ended = 0, soon = 0;
    const missed = new Set<string>(); // changed while all were read
    const load = async () => {
      clearTimeout(soon);
      soon = 0;
      stop.abort();
      const mine = (stop = new AbortController()), began = performance.now(), first = !current.current;
      loading = true;
      pages = 0;
      missed.clear();
      try {
        let list: Job[] = [], read: Job[] = [], next: string | undefined = '', told = 0;
        do {
          const page: Page<Job> = await get<Page<Job>>(`${path}${path.includes('?') ? '&' : '?'}limit=200${next ? '&cursor=' + encodeURIComponent(next) : '&with=last_runs'}`, mine.signal);
          if (!next) put(page.items); // those of later pages are asked for when they come into sight
          for (const j of page.items) read.push(slim(j));
          next = page.next;
          pages++;
          const enough = next === undefined || list.length + read.length >= most;
          if (enough || (first && performance.now() - told > 1000)) {
            told = performance.now();
            list = merged(list, read.sort(byName));
            read = [];
            setJobs(list);
            setMore((others.current = next !== undefined));
          }
          if (enough) break;
        } while (true);
        setProblem(undefined);
      } catch (err) {
        if (mine.signal.aborted) return;
        setProblem(asProblem(err));
      }
      loading = false;
      ended = performance.now();
      took = ended - began;
      for (const id of missed) renew(id);
    };
    const small = () => (current.current?.length ?? 0) <= 200;
    // Reading thousands again and again would keep everybody busy: at most a fifth of the time goes into it.
    const reload = () => { soon ||= window.setTimeout(() => (loading ? ((soon = 0), reload()) : void load()), small() ? 400 : Math.min(60_000, Math.max(400, ended + 4 * took - performance.now()))); };

    // Jobs that were asked for one by one: what they are now. All that changes while all are read is asked for behind it.
    const unfollow = follow((are) => {
      if (!current.current) return;
      if (loading) for (const id of are.keys()) missed.add(id);
      setJobs(renewed(current.current, new Map([...are].map(([id, j]) => [id, j && slim(j)]))));
    });

    if (of.current !== path) {
      of.current = path;
      setJobs(undefined);
      setProblem(undefined);
      setMore((others.current = false));
    }
    void load();
    const off = onNews((n) => {
      if (!n) { // what is read from here on is told if it changes
        if (loading && pages < 3) void load(); else reload();
        return;
      }
      if (n.type === 'run') { // rows in sight are asked for anyway
        if (!following.value || !n.job_id || isInSight(n.job_id)) return;
        const j = current.current?.find((o) => o.id === n.job_id);
        if (j && surprises(j, n.data)) renew(j.id);
        return;
      }
      if (n.type === 'pause') return reload();
      if (!n.type.startsWith('job')) return;
      if (n.data?.version && n.data?.name) { // it says what the job is now
        const was = current.current?.find((j) => j.id === n.job_id);
        if (current.current) setJobs(renewed(current.current, new Map([[n.job_id!, { ...slim(n.data), health: n.data.health ?? was?.health }]])));
        if (loading) missed.add(n.job_id!); else if (was) renew(n.job_id!, 300); // its health is not told
        return;
      }
      if (n.job_id && n.data?.action !== 'create') renew(n.job_id); else reload();
    });
    const timer = setInterval(() => {
      if (!document.hidden && following.value && !streaming.value && (small() || performance.now() - ended > 60_000)) reload();
    }, 5000);
    work.current = { load };
    return () => {
      off();
      clearInterval(timer);
      clearTimeout(soon);
      unfollow();
      stop.abort();
      left = { ...left, path, jobs: current.current, more: others.current };
    };
  }, [path]);
  const reload = useCallback(() => work.current!.load(), []);
  // Next due times move on with each start: those in sight that have passed are asked for again.
  const passed = useCallback((id: string) => { if (following.value) renew(id, 600); }, []);
  return { jobs: of.current === path ? jobs : undefined, more: of.current === path && more, problem, reload, passed };
}

export function Jobs() {
  const q = here.value.search;
  const filters = { app: q.get('app') ?? '', label: q.get('label') ?? '', owner: q.get('owner') ?? '', group: q.get('group') ?? '', calendar: q.get('calendar') ?? '' };
  const text = q.get('q') ?? '', shown = useOneOf('show', Object.keys(belongs)), sort = useOneOf('sort', sorts) || 'status';
  const listed = `/api/v1/jobs${query(filters)}`;
  const [picked, setPicked] = useState<Set<string>>(left.picked);
  useEffect(() => { left.picked = picked; }, [picked]);
  // Of more jobs than are listed, the server looks for those whose name has the longest word; the others are looked for here.
  const [many, setMany] = useState(left.many), [name, setName] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setName(text), 300);
    return () => clearTimeout(timer);
  }, [text]);
  const word = many === listed ? name.split(/\s+/).reduce((a, b) => (b.length > a.length ? b : a), '').slice(0, 100) : '';
  const path = `/api/v1/jobs${query({ ...filters, name: word })}`;
  const { jobs, more, problem, reload, passed } = useJobs(path);
  const tooMany = more && (jobs?.length ?? 0) >= most;
  useEffect(() => { if (jobs && path === listed) setMany((left.many = tooMany ? listed : '')); }, [jobs, path, listed, tooMany]);
  const mine = useMemo(() => (jobs ?? []).filter((j) => picked.has(j.id)), [jobs, picked]);
  const counts = useMemo(() => {
    const c: Record<string, number> = { all: jobs?.length ?? 0 };
    for (const [chip, is] of Object.entries(belongs)) c[chip] = jobs?.reduce((n, j) => n + (is(j) ? 1 : 0), 0) ?? 0;
    return c;
  }, [jobs]);

  const texts = useMemo(() => new WeakMap<Job, string>(), [lang.value]); // in which words are looked for
  const textOf = (j: Job) => {
    let s = texts.get(j);
    if (s === undefined) texts.set(j, (s = `${j.app}/${j.name} ${j.description} ${j.owner} ${what(j)} ${when(j)} ${Object.entries(j.labels).map(([k, v]) => k + '=' + v).join(' ')}`.toLowerCase()));
    return s;
  };
  const list = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = (jobs ?? []).filter((j) =>
      (belongs[shown]?.(j) ?? true) &&
      (!words.length || words.every((w) => textOf(j).includes(w))));
    if (sort === 'name') return found;
    const never = Number.MAX_SAFE_INTEGER;
    const rank = sort === 'due' ? (j: Job) => (j.next_due ? ms(j.next_due) : never) : rankOf;
    return found.map((j): [number, Job] => [rank(j), j]).sort((a, b) => a[0] - b[0]).map(([, j]) => j);
  }, [jobs, text, shown, sort]);

  useEffect(askApps, []);
  useEffect(() => { if (jobs) learnApps(jobs); }, [jobs]);
  const apps = knownApps();
  const chip = (id: string, label: Text, n: number, bad = false) => (n > 0 || id === '' || shown === id) && (
    <button key={id} class={`chip ${bad ? 'bad' : ''}`} aria-pressed={shown === id} onClick={() => setQuery({ show: id || undefined })}>{t(label)}<b>{n.toLocaleString()}{more ? '+' : ''}</b></button>
  );
  const filtered = text || shown || Object.values(filters).some(Boolean);

  return (
    <>
      <Head title={t('Jobs')}>{filters.app && <AppActions app={filters.app} />}{mayAnywhere('admin') && <><Link class="button" to="/jobs/import"><Icon name="download" />{t('Import')}</Link><Link class="button primary" to="/jobs/new"><Icon name="plus" />{t('New job')}</Link></>}</Head>
      <div class="filters">
        <div class="search">
          <Icon name="search" />
          <input type="search" aria-label={t('Search jobs')} placeholder={t('Name, command, schedule, label…')} value={text} onInput={(e) => setQuery({ q: e.currentTarget.value })} />
        </div>
        {(apps.length > 1 || filters.app) && (
          <select aria-label={t('App')} value={filters.app} onChange={(e) => setQuery({ app: e.currentTarget.value })}>
            <option value="">{t('All apps')}</option>
            {[...new Set([...apps, ...(filters.app ? [filters.app] : [])])].map((a) => <option key={a} value={a}>{a}</option>)}
          </select>
        )}
        {(['label', 'owner', 'group', 'calendar'] as const).map((f) => filters[f] && <button key={f} class="chip" aria-pressed="true" onClick={() => setQuery({ [f]: undefined })}>{t(filterText[f])}: {filters[f]} ×</button>)}
        <div class="chips">
          {chip('', 'All', counts.all)}{chip('failing', 'Failing', counts.failing, true)}{chip('unstable', 'Unstable', counts.unstable)}{chip('error', 'Broken', counts.error, true)}{chip('late', 'Late', counts.late)}{chip('waiting', 'Waiting', counts.waiting)}
          {chip('running', 'Running', counts.running)}{chip('paused', 'Paused', counts.paused)}{chip('finished', 'Finished', counts.finished)}
        </div>
      </div>
      {problem && (!jobs || problem.status !== 0) && <ProblemBox problem={problem} again={reload} />}
      {(tooMany || word) && <Notice look="warn"><p>{tooMany && t('Only the first {n} jobs are shown. Choose an app, or search by name.', { n: (jobs?.length ?? 0).toLocaleString() })} {word && t('Too many jobs for a full search: only names were searched.')}</p></Notice>}
      <section class="card">
        {(!jobs && !problem) || (list.length === 0 && many === listed && name !== text) ? <Loading rows={8} /> : !jobs ? null : list.length === 0 ? (
          filtered && (jobs.length !== 0 || word) ? (
            <Empty icon="search" title={t('No matching jobs')}><Button work={() => go('/jobs')}>{t('Show all jobs')}</Button></Empty>
          ) : (
            <Empty icon="clock" title={t('No jobs yet')}>
              <p>{t('A job says what to run and when: a command, an HTTP request or a Go function.')}</p>
              {mayAnywhere('admin') && <Link class="button primary" to="/jobs/new"><Icon name="plus" />{t('Create the first job')}</Link>}
              {mayAnywhere('admin') && <Link to="/jobs/import">{t('Paste a crontab, or a file from "go-crontab export".')}</Link>}
            </Empty>
          )
        ) : <Rows list={list} sort={sort} picked={picked} setPicked={setPicked} passed={passed} />}
      </section>
      {mine.length > 0 && <Bulk jobs={mine} hidden={mine.length - list.filter((j) => picked.has(j.id)).length} clear={() => setPicked(new Set())} reload={reload} />}
    </>
  );
}

const beyond = 6; // rows out of sight that exist at either side, and by how many the window moves

function Rows({ list, sort, picked, setPicked, passed }: { list: Job[]; sort: Sort; picked: Set<string>; setPicked: (s: Set<string> | ((old: Set<string>) => Set<string>)) => void; passed: (id: string) => void }) {
  const ref = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ from: 0, to: 36, height: 54 });
  useLayoutEffect(() => {
    const thin = matchMedia('(max-width: 700px)');
    const measure = () => {
      const box = ref.current;
      if (!box) return;
      const height = thin.matches ? 88 : 54, top = -box.getBoundingClientRect().top;
      const from = Math.max(0, Math.floor(top / height / beyond - 1) * beyond), to = Math.ceil((top + innerHeight) / height / beyond + 1) * beyond;
      setView((v) => (v.from === from && v.to === to && v.height === height ? v : { from, to, height }));
    };
    measure();
    addEventListener('scroll', measure, { passive: true });
    addEventListener('resize', measure);
    return () => { removeEventListener('scroll', measure); removeEventListener('resize', measure); };
  }, [list.length]);
  const pick = useCallback((id: string) => setPicked((old) => {
    const s = new Set(old);
    s.delete(id) || s.add(id);
    return s;
  }), []);
  const allPicked = list.length > 0 && list.every((j) => picked.has(j.id));
  const column = (id: Sort, text: Text, cls = '') => (
    <span class={cls} role="columnheader" aria-sort={sort === id ? 'ascending' : 'none'}><button onClick={() => setQuery({ sort: id === 'status' ? undefined : id })}>{t(text)}{sort === id && <Icon name="down" />}</button></span>
  );
  return (
    <div class="list" role="table" aria-label={t('Jobs')} aria-rowcount={list.length + 1}>
      <div role="rowgroup">
        <div class="jobrow top" role="row">
          <span class="pick" role="columnheader">{mayAnywhere('operator') && <input type="checkbox" aria-label={t('Select all')} checked={allPicked} onChange={() => setPicked(allPicked ? new Set() : new Set(list.map((j) => j.id)))} />}</span>
          {column('name', 'Name')}<span role="columnheader">{t('Schedule')}</span>{column('status', 'Status')}{column('due', 'Next run')}
          <span role="columnheader">{t('Recent runs')}</span><span class="last" role="columnheader">{t('Last run')}</span><span role="columnheader"><span class="unseen">{t('Actions')}</span></span>
        </div>
      </div>
      <div class="rows" role="rowgroup" ref={ref} style={{ height: list.length * view.height }}>
        {list.slice(view.from, view.to).map((j, i) => (
          <Row key={j.id} job={j} index={view.from + i} top={(view.from + i) * view.height} picked={picked.has(j.id)} passed={passed} pick={pick} />
        ))}
      </div>
    </div>
  );
}

const longestTimer = 2 ** 31 - 1; // milliseconds

/** A row. It is drawn again when its job or its runs have changed, not when its neighbours have. */
const Row = memo(function Row({ job: j, index, top, picked, pick, passed }: { job: Job; index: number; top: number; picked: boolean; pick: (id: string) => void; passed: (id: string) => void }) {
  useEffect(() => want(j.id), [j.id]);
  useEffect(() => {
    if (!j.next_due || j.status !== 'active') return;
    const timer = setTimeout(() => passed(j.id), Math.min(longestTimer, Math.max(500, ms(j.next_due) - now() + 300)));
    return () => clearTimeout(timer);
  }, [j.next_due, j.status]);
  const runs = lastRuns(j.id).value;
  const last = runs?.find((r) => r.state === 'running') ?? runs?.[0];
  const can = may('operator', j.app);
  const over = j.health?.code === 'running' && last?.state === 'ended'; // its health is asked for a moment later
  return (
    <div class="jobrow" role="row" aria-rowindex={index + 2} style={{ transform: `translateY(${top}px)` }}>
      <span class="pick" role="cell">{mayAnywhere('operator') && <input type="checkbox" aria-label={t('Select {job}', { job: j.name })} checked={picked} onChange={() => pick(j.id)} />}</span>
      <span class="name" role="cell">
        <span class="line"><Link to={`/jobs/${j.id}`}><bdi>{j.name}</bdi></Link>{j.app !== 'default' && <span class="faint"> · <bdi>{j.app}</bdi></span>}</span>
        <span class="line faint small"><bdi>{j.description || what(j)}</bdi></span>
      </span>
      <span class="plan" role="cell"><span class="line mono" title={j.timezone}>{when(j)}</span>{j.timezone && j.timezone !== zoneShown() && <span class="line faint small thin-hide">{j.timezone}</span>}</span>
      <span class="state" role="cell">{over ? <HealthBadge health={{ code: wrong.has(last.outcome!) ? 'failing' : 'ok', text: '' }} /> : <StatusBadge job={j} />}{j.health?.code === 'paused' && pausedBy(j.health) && <span class="line faint small thin-hide"><bdi>{pausedBy(j.health)}</bdi></span>}</span>
      <span class="due" role="cell">{j.next_due && j.status === 'active' ? <Until at={j.next_due} zone={j.timezone} /> : <span class="faint">—</span>}</span>
      <span class="spark" role="cell"><Link to={`/jobs/${j.id}`} tabIndex={-1} aria-hidden={!runs}><Bars runs={runs} /></Link></span>
      <span class="last small" role="cell">{last ? <><span class="line"><Link to={`/runs/${last.id}`}><OutcomeBadge run={last} /></Link></span><span class="line faint"><Ago at={last.ended ?? last.started ?? last.due} /></span></> : <span class="faint">{runs && t('never ran')}</span>}</span>
      <span class="do" role="cell">
        {can && <span class="thin-only"><Button look="quiet" icon="more" aria-label={t('Actions for {job}', { job: j.name })} work={() => jobActions(j)} /></span>}
        {can && <>
          <Button look="quiet" icon="bolt" aria-label={t('Run {job} now', { job: j.name })} title={t('Run now')} work={() => runNow(j, false)} />
          {j.pause?.scope === 'app' && !j.paused ? <Button look="quiet" icon="play" aria-label={t('Resume the app {app}', { app: j.app })} title={t('Resume app')} work={() => resumeApp(j.app, () => undefined)} /> : j.pause && !j.paused ? null : j.paused ? <Button look="quiet" icon="play" aria-label={t('Resume {job}', { job: j.name })} title={t('Resume')} work={() => resume(j)} />
            : <Button look="quiet" icon="pause" aria-label={t('Pause {job}', { job: j.name })} title={t('Pause')} work={() => pauseJob(j)} />}
        </>}
      </span>
    </div>
  );
});

interface Bulked { changed: number; unchanged: number; refused: number; items: { id: string; app: string; name: string; result: 'changed' | 'unchanged' | 'refused'; why?: Sentence }[] }
type Action = 'run' | 'pause' | 'resume' | 'delete';

/** The requests that do something to jobs, or try it: each takes so many. */
const atOnce = 200;
const bulkPaths = (action: Action, jobs: Job[], dry = false) => Array.from({ length: Math.ceil(jobs.length / atOnce) }, (_, i) =>
  `/api/v1/bulk/${action}${query({ ids: jobs.slice(i * atOnce, (i + 1) * atOnce).map((j) => j.id).join(','), dry_run: dry })}`);
const sum = (all: Bulked[]): Bulked => ({
  changed: all.reduce((n, b) => n + b.changed, 0), unchanged: all.reduce((n, b) => n + b.unchanged, 0), refused: all.reduce((n, b) => n + b.refused, 0), items: all.flatMap((b) => b.items),
});

/** What may be done to the jobs that are picked, all of them at once. */
function Bulk({ jobs, hidden, clear, reload }: { jobs: Job[]; hidden: number; clear: () => void; reload: () => Promise<void> }) {
  const done = async (answers: Bulked[]) => {
    const b = sum(answers), refused = b.items.filter((i) => i.result === 'refused');
    if (refused.length) complain(new Problem(t('Done for {n} jobs; {m} refused', { n: b.changed, m: refused.length }), refused.slice(0, 5).map((i) => `${i.name || i.id}: ${i.why ? sentence(i.why) : ''}`).join('\n'), 1));
    else say(t('Done for {n} jobs', { n: b.changed }) + (b.unchanged ? `, ${t('{n} unchanged', { n: b.unchanged })}` : ''));
    clear();
    await reload();
  };
  const doing = (action: Action, title: string, button: string) => {
    const parts = bulkPaths(action, jobs).map((path) => ({ path, key: onceKey() })); // of the question: who presses again repeats the same requests
    ask({
      title, button, danger: action === 'delete', text: <WouldBe action={action} jobs={jobs} />,
      work: async () => {
        const answers: Bulked[] = [];
        try {
          for (const { path, key } of parts) answers.push(await post<Bulked>(path, {}, key));
        } finally { // what was done before one of the requests failed is done
          if (answers.length) await done(answers);
        }
      },
    });
  };
  const mine = jobs.filter((j) => may('operator', j.app)).length > 0, many = t('{n} jobs', { n: jobs.length });
  return (
    <div class="bulk" role="region" aria-label={t('Selected jobs')}>
      <b>{t('{n} selected', { n: jobs.length })}{hidden > 0 && ` (${t('{n} hidden by the filter', { n: hidden })})`}</b>
      <Button icon="bolt" disabled={!mine} work={() => doing('run', t('Run {n} jobs now?', { n: jobs.length }), t('Run now'))}>{t('Run now')}</Button>
      <Button icon="pause" disabled={!mine} work={() => askPause(t('Pause {job}', { job: many }), bulkPaths('pause', jobs), (answers: Bulked[]) => void done(answers), <WouldBe action="pause" jobs={jobs} />)}>{t('Pause')}</Button>
      <Button icon="play" disabled={!mine} work={() => doing('resume', t('Resume {n} jobs?', { n: jobs.length }), t('Resume'))}>{t('Resume')}</Button>
      {jobs.some((j) => may('admin', j.app)) && <Button look="danger" icon="trash" work={() => doing('delete', t('Delete {job}?', { job: many }), t('Delete'))}>{t('Delete')}</Button>}
      <Button look="quiet" work={clear}>{t('Cancel')}</Button>
    </div>
  );
}

const results: Record<Bulked['items'][number]['result'], Text> = { changed: 'will change', unchanged: 'unchanged', refused: 'refused' };

/** What would become of jobs, as the server says it without changing anything. */
function WouldBe({ action, jobs }: { action: Action; jobs: Job[] }) {
  const [would, set] = useState<Bulked>(), [problem, setProblem] = useState<Problem>();
  useEffect(() => { Promise.all(bulkPaths(action, jobs, true).map((path) => post<Bulked>(path))).then((all) => set(sum(all)), setProblem); }, []);
  if (problem) return <ProblemBox problem={problem} />;
  if (!would) return <Loading rows={3} />;
  const shown = would.items.slice().sort((a, b) => rank[b.result] - rank[a.result]).slice(0, 12); // what is not done is what one wants to know
  return (
    <>
      <p>{t('{n} will change', { n: would.changed })}{would.unchanged > 0 && `, ${t('{n} unchanged', { n: would.unchanged })}`}{would.refused > 0 && `, ${t('{n} refused', { n: would.refused })}`}</p>
      <ul class="small">{shown.map((i) => <li key={i.id}><bdi>{i.name ? `${i.app}/${i.name}` : i.id}</bdi> {i.result !== 'changed' && <span class="faint">{t(results[i.result])}{i.why && `: ${sentence(i.why)}`}</span>}</li>)}
        {would.items.length > shown.length && <li class="faint">{t('and {n} more', { n: would.items.length - shown.length })}</li>}</ul>
    </>
  );
}
const rank = { changed: 0, unchanged: 1, refused: 2 };
