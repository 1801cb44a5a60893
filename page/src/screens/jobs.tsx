import { useComputed, useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { all, call, get, may, mayAnywhere, now, onceKey, post, Problem, query } from '../api';
import { t, type Text } from '../i18n';
import { following, onNews, second, streaming } from '../live';
import { pauseJob, resume, runNow, askPause } from '../parts/actions';
import { Ago, ask, Badge, Bars, Button, complain, Empty, Head, Loading, OutcomeBadge, ProblemBox, say, StatusBadge, Until, what, when } from '../parts/basic';
import { Icon } from '../parts/icon';
import { dontWant, follow, lastRuns, want } from '../parts/outcomes';
import { go, here, Link, setQuery } from '../router';
import { ms } from '../time';
import type { Job, Page, Run } from '../types';

const most = 20_000; // jobs that are listed at once; a search on the server narrows more than that

// What a row needs of a job: ten thousand of them are held.
const slim = (j: Job): Job => ({ ...pick(j), command: j.command?.slice(0, 160) }) as Job;
const pick = ({ id, app, name, description, owner, labels, schedule, schedules, every, at, timezone, command, http, handler, paused, pause, status, error, version, next_due, last_due, group, waiting }: Job) =>
  ({ id, app, name, description, owner, labels, schedule, schedules, every, at, timezone, command, http: http && { method: http.method, url: http.url }, handler, paused, pause, status, error, version, next_due, last_due, group, waiting });

const collator = new Intl.Collator(undefined, { numeric: true });

type Sort = 'name' | 'due' | 'status';

/** Jobs whose last run went wrong, as far as the latest wrong runs tell. */
function useFailing() {
  const failing = useSignal<Map<string, Run>>(new Map());
  useEffect(() => {
    let stopped = false;
    const look = async () => {
      if (document.hidden) return;
      const from = new Date(now() - 7 * 86400_000).toISOString();
      try {
        const wrong = (await Promise.all((['failed', 'timed_out', 'lost', 'missed'] as const).map((outcome) => get<Page<Run>>(`/api/v1/runs${query({ outcome, from, limit: 100 })}`)))).flatMap((p) => p.items);
        const latest = new Map<string, Run>();
        for (const r of wrong) if (!latest.has(r.job_id) || ms(r.due) > ms(latest.get(r.job_id)!.due)) latest.set(r.job_id, r);
        const told = failing.value; // the list is sorted again only if something is different
        if (!stopped && (told.size !== latest.size || [...latest].some(([id, r]) => told.get(id)?.id !== r.id))) failing.value = latest;
      } catch { /* the banner says so */ }
    };
    void look();
    const timer = setInterval(() => { if (following.value) void look(); }, 15_000);
    return () => { stopped = true; clearInterval(timer); };
  }, []);
  return failing;
}

export function Jobs() {
  const q = here.value.search;
  const filters = { app: q.get('app') ?? '', label: q.get('label') ?? '', owner: q.get('owner') ?? '', group: q.get('group') ?? '' };
  const text = q.get('q') ?? '', shown = q.get('show') ?? '', sort = (q.get('sort') as Sort) || 'status';
  const [jobs, setJobs] = useState<Job[]>();
  const [more, setMore] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [picked, setPicked] = useState<Set<string>>(new Set());
  const failing = useFailing();
  const path = `/api/v1/jobs${query(filters)}`;
  const load = useRef<() => Promise<void>>();
  const again = useRef<(id: string) => void>();

  useEffect(() => follow(), []);
  useEffect(() => {
    let stop = new AbortController(), soon = 0, first = true, told = 0;
    load.current = async () => {
      stop.abort();
      const mine = (stop = new AbortController());
      try {
        const items = await all<Job>(path, most, mine.signal, (some, more) => {
          for (let i = some.length - 1; i >= 0 && !slimmed.has(some[i]); i--) slimmed.add((some[i] = slim(some[i])));
          if (first && !mine.signal.aborted && (some.length <= 200 || Date.now() - told > 1000)) { // thousands are sorted each time
            told = Date.now();
            setJobs(some.slice());
            setMore(more);
          }
        });
        if (mine.signal.aborted) return;
        setJobs(items);
        setProblem(undefined);
        setMore(false);
        first = false;
      } catch (err) {
        if (!mine.signal.aborted) setProblem(err as Problem);
      }
    };
    const slimmed = new WeakSet<Job>();
    setJobs(undefined);
    void load.current();
    const off = onNews((n) => {
      if (n?.type === 'run' && following.value && n.job_id) { // its next due time may have moved on
        const j = jobsRef.current?.find((o) => o.id === n.job_id);
        if (j?.next_due && ms(j.next_due) < now()) renew(j.id);
        return;
      }
      if (n && (!following.value || !n.type.startsWith('job'))) return;
      if (n && n.data?.version && n.data?.name) { // it says what the job is now
        setJobs((old) => old?.map((j) => (j.id === n.job_id ? slim(n.data) : j)));
        if (n.type === 'job') return;
      }
      if (n && n.job_id && n.data?.action !== 'create') return renew(n.job_id);
      clearTimeout(soon);
      soon = window.setTimeout(() => void load.current!(), 400);
    });
    // Next due times move on with each start, and nothing tells: those in sight that have passed are asked for again.
    const passed = new Set<string>();
    let renewing = 0;
    const renew = (id: string) => {
      passed.add(id);
      renewing ||= window.setTimeout(async () => {
        renewing = 0;
        const ids = [...passed];
        passed.clear();
        if (mine()) return;
        if ((jobsRef.current?.length ?? 0) <= 200) return void load.current!();
        for (const id of ids.slice(0, 40)) {
          try {
            const j = slim(await get<Job>(`/api/v1/jobs/${id}`));
            setJobs((old) => old?.map((o) => (o.id === id ? j : o)));
          } catch (err) {
            if (err instanceof Problem && err.status === 404) setJobs((old) => old?.filter((o) => o.id !== id));
          }
        }
      }, 1200);
    };
    const mine = () => stop.signal.aborted && !jobsRef.current;
    again.current = renew;
    const timer = setInterval(() => {
      if (!document.hidden && following.value && !streaming.value && (jobsRef.current?.length ?? 0) <= 200) void load.current!();
    }, 5000);
    return () => { off(); clearInterval(timer); clearTimeout(soon); clearTimeout(renewing); stop.abort(); };
  }, [path]);
  const jobsRef = useRef<Job[] | undefined>();
  jobsRef.current = jobs;

  const counts = useMemo(() => {
    const c = { all: 0, failing: 0, paused: 0, error: 0, finished: 0, waiting: 0 };
    for (const j of jobs ?? []) {
      c.all++;
      if (isFailing(j)) c.failing++;
      if (j.waiting?.length) c.waiting++;
      if (j.status !== 'active') c[j.status]++;
    }
    return c;
  }, [jobs, failing.value, lastRuns.value]);

  function isFailing(j: Job): boolean {
    const last = lastRuns.value.get(j.id)?.find((r) => r.state === 'ended' && r.outcome !== 'skipped' && r.outcome !== 'superseded');
    if (last) return ['failed', 'timed_out', 'lost', 'missed'].includes(last.outcome!);
    const bad = failing.value.get(j.id);
    return !!bad && (!j.last_due || ms(bad.until ?? bad.due) >= ms(j.last_due));
  }

  const list = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const rank = (j: Job) => (j.status === 'error' ? 0 : isFailing(j) ? 1 : j.waiting?.length ? 2 : j.status === 'active' ? 3 : j.status === 'paused' ? 4 : 5);
    const found = (jobs ?? []).filter((j) =>
      (shown === '' || (shown === 'failing' ? isFailing(j) : shown === 'waiting' ? !!j.waiting?.length : j.status === shown)) &&
      words.every((w) => `${j.app}/${j.name} ${j.description} ${j.owner} ${what(j)} ${when(j)} ${Object.entries(j.labels).map(([k, v]) => k + '=' + v).join(' ')}`.toLowerCase().includes(w)));
    const byName = (a: Job, b: Job) => (a.app === b.app ? collator.compare(a.name, b.name) : collator.compare(a.app, b.app));
    const due = (j: Job) => (j.next_due ? ms(j.next_due) : Infinity);
    return found.sort((a, b) => (sort === 'due' ? due(a) - due(b) : sort === 'status' ? rank(a) - rank(b) : 0) || byName(a, b));
  }, [jobs, text, shown, sort, sort === 'status' || shown === 'failing' ? failing.value : 0]);

  const apps = useMemo(() => [...new Set((jobs ?? []).map((j) => j.app))].sort(), [jobs]);
  const chip = (id: string, label: Text, n: number, bad = false) => (n > 0 || id === '' || shown === id) && (
    <button key={id} class={`chip ${bad ? 'bad' : ''}`} aria-pressed={shown === id} onClick={() => setQuery({ show: id || undefined })}>{t(label)}<b>{n.toLocaleString()}{more ? '+' : ''}</b></button>
  );
  const filtered = text || shown || Object.values(filters).some(Boolean);

  return (
    <>
      <Head title={t('Jobs')}>{mayAnywhere('admin') && <Link class="button primary" to="/jobs/new"><Icon name="plus" />{t('New job')}</Link>}</Head>
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
        {(['label', 'owner', 'group'] as const).map((f) => filters[f] && <button key={f} class="chip" aria-pressed="true" onClick={() => setQuery({ [f]: undefined })}>{f}: {filters[f]} ×</button>)}
        <div class="chips">
          {chip('', 'All', counts.all)}{chip('failing', 'Failing', counts.failing, true)}{chip('error', 'Broken', counts.error, true)}{chip('waiting', 'Waiting', counts.waiting)}{chip('paused', 'Paused', counts.paused)}{chip('finished', 'Finished', counts.finished)}
        </div>
      </div>
      {problem && <ProblemBox problem={problem} again={() => load.current!()} />}
      <section class="card">
        {!jobs && !problem ? <Loading rows={8} /> : list.length === 0 ? (
          filtered && jobs?.length !== 0 ? (
            <Empty icon="search" title={t('No job is like that')}><Button work={() => go('/jobs')}>{t('Show all')}</Button></Empty>
          ) : (
            <Empty icon="clock" title={t('There are no jobs yet')}>
              <p>{t('A job says what to run and when: a command, an HTTP request or a Go function.')}</p>
              {mayAnywhere('admin') && <Link class="button primary" to="/jobs/new"><Icon name="plus" />{t('Add the first job')}</Link>}
            </Empty>
          )
        ) : <Rows list={list} sort={sort} picked={picked} setPicked={setPicked} passed={(id) => { if (following.value) again.current?.(id); }} />}
      </section>
      {picked.size > 0 && <Bulk jobs={(jobs ?? []).filter((j) => picked.has(j.id))} clear={() => setPicked(new Set())} reload={() => load.current!()} />}
    </>
  );
}

function Rows({ list, sort, picked, setPicked, passed }: { list: Job[]; sort: Sort; picked: Set<string>; setPicked: (s: Set<string>) => void; passed: (id: string) => void }) {
  const ref = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ from: 0, to: 40, height: 54 });
  useLayoutEffect(() => {
    const measure = () => {
      const box = ref.current;
      if (!box) return;
      const height = matchMedia('(max-width: 700px)').matches ? 88 : 54, top = box.getBoundingClientRect().top;
      const from = Math.max(0, Math.floor(-top / height) - 8), to = Math.min(list.length, Math.ceil((innerHeight - top) / height) + 8);
      setView((v) => (v.from === from && v.to === to && v.height === height ? v : { from, to, height }));
    };
    measure();
    addEventListener('scroll', measure, { passive: true });
    addEventListener('resize', measure);
    return () => { removeEventListener('scroll', measure); removeEventListener('resize', measure); };
  }, [list.length]);
  const allPicked = list.length > 0 && list.every((j) => picked.has(j.id));
  const column = (id: Sort, text: Text, cls = '') => (
    <span class={cls} role="columnheader" aria-sort={sort === id ? 'ascending' : 'none'}><button onClick={() => setQuery({ sort: id === 'status' ? undefined : id })}>{t(text)}{sort === id && <Icon name="down" />}</button></span>
  );
  return (
    <div class="list" role="table" aria-label={t('Jobs')} aria-rowcount={list.length + 1}>
      <div role="rowgroup">
        <div class="jobrow top" role="row">
          <span class="pick" role="columnheader"><input type="checkbox" aria-label={t('Pick all')} checked={allPicked} onChange={() => setPicked(allPicked ? new Set() : new Set(list.map((j) => j.id)))} /></span>
          {column('name', 'Name')}<span role="columnheader">{t('When')}</span>{column('status', 'Status')}{column('due', 'Next')}
          <span role="columnheader">{t('Last runs')}</span><span class="last" role="columnheader">{t('Last')}</span><span role="columnheader"><span class="unseen">{t('Actions')}</span></span>
        </div>
      </div>
      <div class="rows" role="rowgroup" ref={ref} style={{ height: list.length * view.height }}>
        {list.slice(view.from, view.to).map((j, i) => (
          <Row key={j.id} job={j} index={view.from + i} top={(view.from + i) * view.height} picked={picked.has(j.id)} passed={passed} pick={() => {
            const s = new Set(picked);
            s.has(j.id) ? s.delete(j.id) : s.add(j.id);
            setPicked(s);
          }} />
        ))}
      </div>
    </div>
  );
}

/** Changes when a due time comes near, so that a timer is set for it. */
const left60 = (j: Job) => { void second.value; return !!j.next_due && ms(j.next_due) - now() < 60_000; };

function Row({ job: j, index, top, picked, pick, passed }: { job: Job; index: number; top: number; picked: boolean; pick: () => void; passed: (id: string) => void }) {
  useEffect(() => {
    const timer = setTimeout(() => want(j.id), 60); // not while scrolling past
    return () => { clearTimeout(timer); dontWant(j.id); };
  }, [j.id]);
  useEffect(() => {
    if (!j.next_due || j.status !== 'active') return;
    const left = ms(j.next_due) - now() + 300;
    if (left > 60_000) return;
    const timer = setTimeout(() => passed(j.id), Math.max(left, 500));
    return () => clearTimeout(timer);
  }, [j.next_due, j.status, following.value, left60(j)]);
  const runs = useComputed(() => lastRuns.value.get(j.id)).value;
  const last = runs?.find((r) => r.state === 'running') ?? runs?.[0];
  const can = may('operator', j.app);
  return (
    <div class="jobrow" role="row" aria-rowindex={index + 2} style={{ transform: `translateY(${top}px)` }}>
      <span class="pick" role="cell"><input type="checkbox" aria-label={t('Pick {job}', { job: j.name })} checked={picked} onChange={pick} /></span>
      <span class="name" role="cell">
        <span class="line"><Link to={`/jobs/${j.id}`}><bdi>{j.name}</bdi></Link>{j.app !== 'default' && <span class="faint"> · <bdi>{j.app}</bdi></span>}</span>
        <span class="line faint small"><bdi>{j.description || what(j)}</bdi></span>
      </span>
      <span class="plan" role="cell"><span class="line mono" title={j.timezone}>{when(j)}</span>{j.timezone && j.timezone !== 'UTC' && <span class="line faint small thin-hide">{j.timezone}</span>}</span>
      <span class="state" role="cell">{j.waiting?.length ? <Badge tone="warn" title={j.waiting[0].why}>{t('waiting')}</Badge> : <StatusBadge job={j} />}</span>
      <span class="due" role="cell">{j.next_due && j.status === 'active' ? <Until at={j.next_due} zone={j.timezone} /> : <span class="faint">—</span>}</span>
      <span class="spark" role="cell"><Link to={`/jobs/${j.id}`} tabIndex={-1} aria-hidden="false"><Bars runs={runs} /></Link></span>
      <span class="last small" role="cell">{last ? <><span class="line"><Link to={`/runs/${last.id}`}><OutcomeBadge run={last} /></Link></span><span class="line faint"><Ago at={last.ended ?? last.started ?? last.due} /></span></> : <span class="faint">{runs && t('never ran')}</span>}</span>
      <span class="do" role="cell">
        {can && <>
          <Button look="quiet" icon="bolt" aria-label={t('Run {job} now', { job: j.name })} title={t('Run now')} work={() => runNow(j, false)} />
          {j.paused ? <Button look="quiet" icon="play" aria-label={t('Resume {job}', { job: j.name })} title={t('Resume')} work={() => resume(j)} />
            : <Button look="quiet" icon="pause" aria-label={t('Pause {job}', { job: j.name })} title={t('Pause')} work={() => pauseJob(j)} />}
        </>}
      </span>
    </div>
  );
}

/** Does the same to many jobs, a few at a time, and says which could not be done. */
function Bulk({ jobs, clear, reload }: { jobs: Job[]; clear: () => void; reload: () => Promise<void> }) {
  const each = async (doing: (j: Job) => Promise<unknown>) => {
    const left = jobs.slice(), wrong: string[] = [];
    await Promise.all(Array.from({ length: 6 }, async () => {
      for (let j = left.shift(); j; j = left.shift()) {
        try { await doing(j); } catch (err) { wrong.push(`${j.name}: ${(err as Error).message}`); }
      }
    }));
    if (wrong.length) complain(new Problem(t('{n} of {all} could not be done', { n: wrong.length, all: jobs.length }), wrong.slice(0, 5).join('\n'), 1));
    else say(t('Done for {n} jobs', { n: jobs.length }));
    clear();
    await reload();
  };
  const names = (list: Job[]) => (
    <ul class="small">{list.slice(0, 12).map((j) => <li key={j.id}><bdi>{j.app}/{j.name}</bdi></li>)}{list.length > 12 && <li class="faint">{t('and {n} more', { n: list.length - 12 })}</li>}</ul>
  );
  const mine = jobs.filter((j) => may('operator', j.app));
  return (
    <div class="bulk" role="region" aria-label={t('Picked jobs')}>
      <b>{t('{n} picked', { n: jobs.length })}</b>
      <Button icon="bolt" disabled={!mine.length} work={() => ask({ title: t('Run {n} jobs now?', { n: jobs.length }), button: t('Run now'), text: names(jobs), work: () => each((j) => post(`/api/v1/jobs/${j.id}/run`, {}, onceKey())) })}>{t('Run now')}</Button>
      <Button icon="pause" disabled={!mine.length} work={() => askPause(t('Pause {job}', { job: t('{n} jobs', { n: jobs.length }) }), `/api/v1/jobs/${jobs[0].id}/pause`, (first: Job) => void each((j) => (j.id === first.id ? Promise.resolve() : post(`/api/v1/jobs/${j.id}/pause`, { ...(first.pause?.reason && { reason: first.pause.reason }), ...(first.pause?.until && { until: first.pause.until }) }))))}>{t('Pause')}</Button>
      <Button icon="play" disabled={!mine.length} work={() => ask({ title: t('Resume {n} jobs?', { n: jobs.length }), button: t('Resume'), text: names(jobs.filter((j) => j.paused)), work: () => each((j) => (j.paused ? post(`/api/v1/jobs/${j.id}/resume`) : Promise.resolve())) })}>{t('Resume')}</Button>
      {jobs.every((j) => may('admin', j.app)) && <Button look="danger" icon="trash" work={() => ask({ title: t('Delete {job}?', { job: t('{n} jobs', { n: jobs.length }) }), button: t('Delete'), danger: true, text: names(jobs), work: () => each((j) => call(`/api/v1/jobs/${j.id}`, { method: 'DELETE', headers: { 'If-Match': `"${j.version}"` } })) })}>{t('Delete')}</Button>}
      <Button look="quiet" work={clear}>{t('Cancel')}</Button>
    </div>
  );
}
