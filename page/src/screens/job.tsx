import { Suspense, lazy } from 'preact/compat';
import { useEffect, useState } from 'preact/hooks';
import { call, get, may, now, onceKey, post, Problem, query } from '../api';
import { t, waitSaid, word, type Text } from '../i18n';
import { useGet, second } from '../live';
import { deleteJob, pauseJob, RerunFailed, resume, resumeApp, runNow } from '../parts/actions';
import { Ago, ask, Badge, Button, Card, Empty, Head, Loading, Notice, ProblemBox, problemDetail, Said, say, StatusBadge, Tabs, Until, When } from '../parts/basic';
import { Icon } from '../parts/icon';
import { OutcomeSelect, RunTable, TriggerSelect, useRuns } from '../parts/runtable';
import { Diff, differences, plain } from '../parts/diff';
import { isUsual } from '../parts/usual';
import { Dues, whenOf } from '../parts/duelist';
import { Backfills, openBackfill } from './backfills';
import { Why } from './why';
import { KeepInForce, type Keep } from '../parts/keep';
import { go, here, Link } from '../router';
import { brief, durationSaid, inZone, ms, zoneShown } from '../time';
import type { AuditEntry, Change, DueTime, Job, Page, Preview, Run, VersionItem } from '../types';

const Plot = lazy(() => import('../parts/plot').then((m) => m.Plot));

export function JobScreen({ id, tab }: { id: string; tab: string }) {
  const { data: j, problem, loading, reload } = useGet<Job>(`/api/v1/jobs/${id}`, { every: 3000, on: ['job', 'run', 'pause', 'change'], job: id });
  if (!j) return loading ? <Loading /> : problem?.status === 404
    ? <Gone id={id} problem={problem} />
    : problem ? <ProblemBox problem={problem} again={reload} /> : <Loading />;
  if (problem?.status === 404) return <Gone id={id} problem={problem} />; // somebody has deleted it
  const operate = may('operator', j.app), edit = may('admin', j.app);
  return (
    <>
      <Head title={<bdi>{j.name}</bdi>} crumb={<><Link to="/jobs">{t('Jobs')}</Link> / <Link to={`/jobs?app=${encodeURIComponent(j.app)}`}><bdi>{j.app}</bdi></Link></>}
        sub={<><StatusBadge job={j} />{j.next_due && j.status === 'active' && <span>{t('next run')} <Until at={j.next_due} zone={j.timezone} /></span>}{j.description && <bdi>{j.description}</bdi>}</>}>
        {operate && <Button look="primary" icon="bolt" work={() => runNow(j, true)}>{t('Run now')}</Button>}
        {operate && (j.paused ? <Button icon="play" work={() => resume(j).then(reload)}>{t('Resume')}</Button> : j.pause?.scope === 'app' ? <Button icon="play" work={() => resumeApp(j.app, reload)}>{t('Resume app')}</Button> : j.pause ? <Link class="button" to="/settings/pauses"><Icon name="pause" />{t('Show pauses')}</Link> : <Button icon="pause" work={() => pauseJob(j)}>{t('Pause')}</Button>)}
        {edit && <Link class="button" to={`/jobs/${j.id}/edit`}><Icon name="edit" />{t('Edit')}</Link>}
        {operate && !j.at && !j.manual && !j.after && !j.delay && <Button icon="history" work={() => openBackfill(j)}>{t('Backfill')}</Button>}
        {may('admin') && <Button icon="bell" work={async () => (await import('./alerts')).alertOf(j)}>{t('Add alert')}</Button>}
        {edit && <Link class="button" to={`/jobs/new?from=${j.id}`} aria-label={t('Duplicate')} title={t('Duplicate')}><Icon name="copy" /></Link>}
        {edit && <Button icon="trash" aria-label={t('Delete')} title={t('Delete')} work={() => deleteJob(j)} />}
      </Head>
      <div class="stack">
        {problem && problem.status !== 0 && <ProblemBox problem={problem} again={reload} />}
        {j.error && <Notice look="bad"><b>{t('Cannot be scheduled')}</b><p><Said text={j.error} /></p></Notice>}
        {j.pause?.scope === 'job' && <Notice look="warn" icon="pause"><b>{t('Paused')}</b>
          <p>{j.pause.reason && <bdi>{j.pause.reason} · </bdi>}{j.pause.by && t('by {who}', { who: j.pause.by })} · <Ago at={j.pause.since} />{j.pause.until && <> · {t('until')} <When at={j.pause.until} zone={j.timezone} /></>}</p></Notice>}
        {j.remove_at && <Notice icon="clock"><b>{t('This finished job will be deleted')}</b><p><When at={j.remove_at} zone={j.timezone} long /></p></Notice>}
        {j.waiting?.map((w) => <Notice key={w.due} look="warn" icon="clock"><b>{t('The run scheduled for {at} is waiting', { at: `${brief(w.due, j.timezone)}${j.timezone ? ' ' + j.timezone : ''}` })}</b><p><Said text={w.why} by={() => waitSaid(w)} zone={j.timezone} /></p></Notice>)}
        {j.warnings?.map((w) => <Notice key={w.message} look="warn"><p><Said text={w} /></p></Notice>)}
        <div class="split">
          <div>
            <Tabs current={tab} items={[
              { id: 'history', to: `/jobs/${id}`, text: t('History') }, { id: 'definition', to: `/jobs/${id}/definition`, text: t('Definition') },
              { id: 'versions', to: `/jobs/${id}/versions`, text: t('Versions') }, { id: 'why', to: `/jobs/${id}/why`, text: t('Why?') }, { id: 'backfills', to: `/jobs/${id}/backfills`, text: t('Backfills') },
            ]} />
            {tab === 'history' ? <History job={j} /> : tab === 'definition' ? <Definition job={j} /> : tab === 'versions' ? <Versions job={j} done={reload} /> : tab === 'why' ? <Why job={j} /> : tab === 'backfills' ? <Backfills job={j} />
              : <Empty icon="question" title={t('Page not found')}><Link class="button" to={`/jobs/${id}`}>{t('History')}</Link></Empty>}
          </div>
          <div class="stack"><NextDue job={j} /><Chain job={j} /><Facts job={j} /><Card title={t('Retention')}><div class="in"><KeepInForce own={j.keep as Keep | undefined} app={j.app} /></div></Card></div>
        </div>
      </div>
    </>
  );
}

/** A job that is there no more: its records outlive it, and the audit knows what it was. */
function Gone({ id, problem }: { id: string; problem: Problem }) {
  const line = useGet<Page<AuditEntry>>(`/api/v1/audit${query({ job_id: id, action: 'delete', limit: 1 })}`, { every: 0 }), e = line.data?.items[0];
  const { items: runs, loading, more } = useRuns(`/api/v1/runs${query({ job_id: id, limit: 50 })}`, id);
  if (line.loading || loading) return <Loading />;
  if (!e && runs.length === 0) return <Empty icon="question" title={t('Job not found')}><p>{problemDetail(problem)}</p><Link class="button" to="/jobs">{t('Jobs')}</Link></Empty>;
  const was = differences(e?.was, {}).map(({ field, was }) => ({ field, becomes: was }));
  return (
    <>
      <Head title={<bdi>{e?.name ?? runs[0].job}</bdi>} crumb={<><Link to="/jobs">{t('Jobs')}</Link> / <bdi>{e?.app ?? runs[0].app}</bdi></>}
        sub={<><Badge tone="mute">{t('deleted')}</Badge>{e && <span>{t('This job was deleted by {who}', { who: e.who })} <Ago at={e.at} /></span>}</>}>
        <Link class="button" to="/audit?kind=job&action=delete">{t('Deleted jobs')}</Link>
      </Head>
      <div class="stack">
        <Card title={t('Runs')}>
          {runs.length === 0 ? <Empty icon="runs" title={t('No matching runs')} /> : <RunTable runs={runs} />}
          {more && <div class="more-row"><Button work={more}>{t('Show older')}</Button></div>}
        </Card>
        {was.length > 0 && <Card title={t('Definition')}><div class="in"><Diff changes={was} /></div></Card>}
      </div>
    </>
  );
}

const overlapText: Record<string, Text> = { skip: 'skip the new run', queue: 'queue the new run', replace: 'replace the old run', allow: 'run both' };

function Facts({ job: j }: { job: Job }) {
  const facts: [string, preact.ComponentChildren][] = [
    [t('Owner'), j.owner && <Link to={`/jobs?owner=${encodeURIComponent(j.owner)}`}><bdi>{j.owner}</bdi></Link>],
    [t('Labels'), Object.keys(j.labels).length > 0 && <span class="row">{Object.entries(j.labels).map(([k, v]) => <Link key={k} class="tag" to={`/jobs?label=${encodeURIComponent(k + '=' + v)}`}>{k}={v}</Link>)}</span>],
    [t('Group'), j.group && <Link to={`/jobs?group=${encodeURIComponent(j.group)}`}><bdi>{j.group}</bdi></Link>],
    [t('Node selector'), j.selector && <code>{j.selector}</code>],
    [t('Overlap'), word(overlapText, j.overlap)], [t('Timeout'), j.timeout && durationSaid(j.timeout)],
    [t('Updated'), <><Ago at={j.updated} /> · <Link to={`/jobs/${j.id}/versions`}>{t('Versions')}</Link></>],
    [t('Created'), <Ago at={j.created} />],
  ];
  return <Card title={t('Details')}><dl class="facts in">{facts.map(([k, v]) => v && <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl></Card>;
}

/** The jobs that this one follows, and those that follow it, each with how it fares. */
function Chain({ job: j }: { job: Job }) {
  const before = j.after?.jobs.map((name) => (name.includes('/') ? name : `${j.app}/${name}`)) ?? [], behind = j.followers ?? [];
  if (before.length + behind.length === 0) return null;
  return (
    <Card title={t('Chain')}>
      <ol class="chain in">
        {before.map((name) => <Linked key={name} name={name} />)}
        <li class="here"><b><bdi>{j.name}</bdi></b><StatusBadge job={j} /></li>
        {behind.map((name) => <Linked key={name} name={name} />)}
      </ol>
    </Card>
  );
}

function Linked({ name }: { name: string }) {
  const slash = name.indexOf('/');
  const { data: j, problem } = useGet<Job>(`/api/v1/apps/${encodeURIComponent(name.slice(0, slash))}/jobs/${encodeURIComponent(name.slice(slash + 1))}`, { every: 5000 });
  return <li>{j ? <><Link to={`/jobs/${j.id}`}><bdi>{name}</bdi></Link><StatusBadge job={j} />{j.last_due && <span class="faint small"><Ago at={j.last_due} /></span>}</> : <><bdi>{name}</bdi>{problem?.status === 404 && <Badge tone="mute">{t('deleted')}</Badge>}</>}</li>;
}

function NextDue({ job: j }: { job: Job }) {
  const [p, set] = useState<Preview>(), [next, setNext] = useState<DueTime[]>();
  const [wrong, setWrong] = useState<Problem>(), [turn, setTurn] = useState(0);
  const n = 12, again = () => setTurn((x) => x + 1);
  const left = (next ?? []).filter((d) => ms(d.due) > now() - 500);
  void second.value;
  const few = next?.length === n && left.length < 6;
  useEffect(() => {
    if (!few) return;
    const timer = setTimeout(again, 500);
    return () => clearTimeout(timer);
  }, [few, next]);
  // The due times are the job's own: a jitter goes by its app and name. The words are those of its schedule.
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    Promise.all([get<Page<DueTime>>(`/api/v1/jobs/${j.id}/next?n=${n}`, stop.signal), call<Preview>('/api/v1/preview', { method: 'POST', body: { ...whenOf({ ...j }), n: 1 }, signal: stop.signal })]).then(
      ([dues, preview]) => { setNext(dues.items); set(preview.data); setWrong(undefined); },
      (err) => { if (!stop.signal.aborted) { setWrong(err); timer = window.setTimeout(again, 5000); } });
    return () => { stop.abort(); clearTimeout(timer); };
  }, [j.id, j.version, turn]);
  return (
    <Card title={t('Next runs')}>
      <div class="in stack">
        {p && <p><b>{inZone(p.words)}</b></p>}
        {wrong && <ProblemBox problem={wrong} again={again} />}
        {p?.warnings?.map((w) => <Notice key={w.message} look="warn"><p><Said text={w} /></p></Notice>)}
        {j.status === 'finished' ? <p class="faint">{t('No more runs are scheduled.')}</p> : j.pause ? <p class="faint">{t('Paused. After a resume, it would run at:')}</p> : null}
        {j.status !== 'finished' && (next ? <Dues list={left.slice(0, 6)} zone={j.timezone} /> : !wrong && <Loading rows={4} />)}
        {j.timezone && j.timezone !== zoneShown() && <p class="faint small">{t('Times are in {zone}.', { zone: j.timezone })}</p>}
      </div>
    </Card>
  );
}

function History({ job: j }: { job: Job }) {
  const q = here.value.search, outcome = q.get('outcome') ?? '', trigger = q.get('trigger') ?? '';
  const { items: runs, problem, loading, reload, more } = useRuns(`/api/v1/runs${query({ job_id: j.id, outcome, trigger, limit: 50 })}`, j.id);
  return (
    <div class="stack">
      <Plots runs={runs} />
      <Card title={t('Runs')} more={<>{may('operator', j.app) && !j.at && <RerunFailed filter={{ job_id: j.id, outcome }} done={() => void reload()} />}<OutcomeSelect value={outcome} /><TriggerSelect value={trigger} /></>}>
        {problem && <ProblemBox problem={problem} again={reload} />}
        {loading ? <Loading /> : runs.length === 0
          ? !problem && <Empty icon="runs" title={outcome || trigger ? t('No matching runs') : t('No runs yet')}>{j.next_due && !outcome && <p>{t('The first run is scheduled')} <Until at={j.next_due} />{t('.')}</p>}</Empty>
          : <RunTable runs={runs} zone={j.timezone} />}
        {more && <div class="more-row"><Button work={more}>{t('Show older')}</Button></div>}
      </Card>
    </div>
  );
}

function Plots({ runs }: { runs: Run[] }) {
  const done = runs.filter((r) => r.started && r.ended && r.outcome !== 'skipped').sort((a, b) => ms(a.started) - ms(b.started));
  if (done.length < 3) return null;
  const x = done.map((r) => ms(r.started) / 1000), took = (r: Run) => Math.max(0.1, ms(r.ended) - ms(r.started));
  const ok = (r: Run) => r.outcome === 'succeeded';
  const open = (i: number) => go(`/runs/${done[i].id}`);
  return (
    <div class="halves">
      <Card title={t('Duration')} more={<span class="legend"><span><i style={{ background: 'var(--good-dot)' }} />{t('succeeded')}</span><span><i style={{ background: 'var(--bad-dot)' }} />{t('other results')}</span></span>}>
        <Suspense fallback={<div class="plot" />}><Plot label={t('Duration')} x={x} click={open} series={[{ label: 'a', colour: '--good-dot', points: true, values: done.map((r) => (ok(r) ? took(r) : null)) }, { label: 'b', colour: '--bad-dot', points: true, values: done.map((r) => (ok(r) ? null : took(r))) }]} /></Suspense>
      </Card>
      <Card title={t('Delay')}>
        <Suspense fallback={<div class="plot" />}><Plot label={t('Delay')} x={x} click={open} series={[{ label: 'late', colour: '--busy-dot', points: true, values: done.map((r) => r.lateness_ms ?? null) }]} /></Suspense>
      </Card>
    </div>
  );
}

const order = ['command', 'http', 'handler', 'payload', 'stdin'];
const hidden = new Set(['id', 'health', 'last_runs', 'app', 'name', 'paused', 'pause', 'status', 'remove_at', 'error', 'version', 'next_due', 'last_due', 'created', 'updated', 'warnings', 'waiting', 'labels', 'description', 'owner']);

function Definition({ job: j }: { job: Job }) {
  const usual: string[] = [];
  /** A value without what is as usual. */
  const own = (v: unknown, path: string): unknown => {
    if (v && typeof v === 'object' && !Array.isArray(v)) {
      const left = Object.entries(v).map(([k, x]) => [k, own(x, `${path}.${k}`)] as const).filter(([, x]) => x !== undefined);
      return left.length ? Object.fromEntries(left) : undefined;
    }
    if (v === undefined || v === '') return undefined;
    if (!isUsual(path, v, j)) return v;
    usual.push(`${path}: ${plain(v)}`);
    return undefined;
  };
  const all: Record<string, unknown> = Object.fromEntries(Object.entries(j).filter(([k]) => !hidden.has(k)).map(([k, v]) => [k, own(v, k)]));
  const fields = Object.keys(all).filter((k) => all[k] !== undefined).sort((a, b) => (order.includes(b) ? 1 : 0) - (order.includes(a) ? 1 : 0));
  return (
    <Card title={t('Definition')} more={may('admin', j.app) && <Link class="button" to={`/jobs/${j.id}/edit`}><Icon name="edit" />{t('Edit')}</Link>}>
      <dl class="facts in">
        {fields.map((k) => {
          const v = all[k], text = typeof v === 'string' ? v : plain(v), long = order.includes(k) || text.length > 40 || text.includes('\n');
          return <div key={k} class={long ? 'wide' : ''}><dt><code>{k}</code></dt><dd>{long ? <pre class="code" tabIndex={0}>{text}</pre> : text}</dd></div>;
        })}
        {usual.length > 0 && <div class="wide faint"><dt>{t('Defaults')}</dt><dd>{usual.map((x) => <code key={x} class="tag">{x}</code>)}</dd></div>}
      </dl>
    </Card>
  );
}

function Versions({ job: j, done }: { job: Job; done: () => Promise<void> }) {
  const list = useGet<Page<VersionItem>>(`/api/v1/jobs/${j.id}/versions?limit=100`, { every: 15_000, on: ['job'], job: j.id });
  const [open, setOpen] = useState<number>();
  const items = list.data?.items ?? [];
  return (
    <Card title={t('Versions')}>
      {list.problem && <ProblemBox problem={list.problem} again={list.reload} />}
      {list.loading && <Loading />}
      {items.map((v, i) => (
        <div key={v.version} class="in" style={{ borderTop: i ? '1px solid var(--line)' : undefined }}>
          <div class="row">
            <b>{t('version {n}', { n: v.version })}</b>{v.current && <span class="tag good">{t('current')}</span>}
            <span class="faint"><When at={v.at} long />{v.who && <> · <bdi>{v.who}</bdi></>}</span>
            <span class="grow" />
            {i < items.length - 1 && <Button look="quiet" aria-expanded={open === v.version} work={() => setOpen(open === v.version ? undefined : v.version)}>{t('Show changes')}</Button>}
            {!v.current && may('admin', j.app) && <Button icon="history" work={() => rollback(j, v, done)}>{t('Roll back')}</Button>}
          </div>
          <p class="small faint">{v.changed.length ? v.changed.join(', ') : i === items.length - 1 ? t('first version') : ''}</p>
          {open === v.version && <VersionDiff job={j.id} from={items[i + 1].version} to={v.version} />}
        </div>
      ))}
    </Card>
  );
}

function VersionDiff({ job, from, to }: { job: string; from: number; to: number }) {
  const { data, problem } = useGet<{ changes: Change[] }>(`/api/v1/jobs/${job}/versions/${from}/diff/${to}`, { every: 0 });
  return problem ? <ProblemBox problem={problem} /> : data ? <Diff changes={data.changes} /> : <Loading rows={2} />;
}

const rollback = (j: Job, v: VersionItem, done: () => Promise<void>, key = onceKey()) => ask({
  title: t('Roll back {job} to version {n}?', { job: j.name, n: v.version }), button: t('Roll back'),
  text: <><p>{t('These fields will change:')}</p><VersionDiff job={j.id} from={j.version} to={v.version} /></>,
  work: async () => {
    await post(`/api/v1/jobs/${j.id}/rollback`, { version: v.version }, { 'If-Match': `"${j.version}"`, ...key });
    say(t('{job} rolled back to version {n}', { job: j.name, n: v.version }));
    await done();
  },
});
