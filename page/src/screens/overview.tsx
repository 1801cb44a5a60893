import { mayAnywhere, now, query } from '../api';
import { alertSaid, reasonSaid, t } from '../i18n';
import { useGet, type Asked } from '../live';
import { learnApps } from '../parts/apps';
import { Ago, Badge, Card, Empty, Head, HealthBadge, Loading, Notice, OutcomeBadge, ProblemBox, Said, Until, When } from '../parts/basic';
import { counts, useSomeRule } from '../parts/counts';
import { Icon } from '../parts/icon';
import { nodeState } from '../parts/nodes';
import { isoOf, presetText, usePreset } from '../parts/ranges';
import { Took } from '../parts/runtable';
import { Link } from '../router';
import { span } from '../time';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { dueTimes, type Ahead } from '../parts/dues';
import type { Job, JobStat, JobStats, Node as NodeView, Page, Run } from '../types';

// The first screen: what went wrong, what runs, and what comes next. The figures are one request; the lists beside them are
// asked for only if the counts of the navigation say that there is something in them.

export function Overview() {
  const stats = useGet<JobStats>('/api/v1/stats/jobs?window=24h&limit=50', { every: 10_000, on: ['run'], always: true });
  const st = stats.data;
  useEffect(() => { if (st) learnApps(st.items); }, [st]);
  const any = useGet<Page<Job>>(st && st.totals.jobs === 0 ? '/api/v1/jobs?limit=1' : null, { every: 15_000, on: ['job'] });
  if (any.data?.items.length === 0) return <><Head title={t('Overview')} /><First /></>;
  const wrong = st?.items.filter(went) ?? [];

  return (
    <>
      <Head title={t('Overview')} sub={<span>{t('The last 24 hours, and now')}</span>} />
      {stats.problem && (!st || stats.problem.status !== 0) && <ProblemBox problem={stats.problem} again={stats.reload} />}
      {!st ? stats.loading && <Loading rows={8} /> : (
        <>
          <Tiles st={st} />
          <div class="stack">
            {st.cut && <Notice look="warn"><p>{t('There are too many runs to count all of them. The figures cover a part of the 24 hours.')}</p></Notice>}
            <Failed items={wrong} cut={st.cut} more={st.truncated && wrong.length === st.items.length} />
            <div class="halves">
              <Running n={st.totals.running} /><Missed missed={st.totals.missed} />
              <Firing /><Nodes />
              <Next />
            </div>
          </div>
        </>
      )}
    </>
  );
}

/** The failed runs that the success rate counts. Missed times never became runs, and whoever kills a run knows it. */
const failures = (s: { failed: number; lost: number }) => s.failed + s.lost;
const ran = (s: { failed: number; lost: number; succeeded: number }) => failures(s) + s.succeeded;
const went = (s: JobStat) => failures(s) + s.missed > 0 || s.health?.code === 'failing';
const percent = (rate: number | undefined) => (rate === undefined ? '—' : `${rate === 1 ? 100 : Math.min(99.9, +(100 * rate).toFixed(1))} %`);
const nameOf = (s: { app: string; job: string }) => <><bdi>{s.job}</bdi>{s.app !== 'default' && <span class="faint small"> · <bdi>{s.app}</bdi></span>}</>;

function Tiles({ st }: { st: JobStats }) {
  const told = useSomeRule(), c = counts.value, sum = st.totals, failed = failures(sum);
  const tile = (to: string, label: string, n: string, small: string, bad = false) => <Link class="tile" to={to}><span>{label}</span><b class={bad ? 'bad' : ''}>{n}</b><small>{small}</small></Link>;
  return (
    <div class="tiles">
      {tile('/jobs?show=failing', t('Failing jobs'), `${(c?.failing_jobs ?? sum.failing_jobs).toLocaleString()}${c?.at_least ? '+' : ''}`, t('not successful since'), (c?.failing_jobs ?? sum.failing_jobs) > 0)}
      {tile('/#failed', t('Failed runs'), failed.toLocaleString(), st.cut ? t('in 24 h') : t('of {n} in 24 h', { n: ran(sum).toLocaleString() }), failed > 0)}
      {tile('/timeline/slots?last=day&only=wrong', t('Missed'), sum.missed.toLocaleString(), t('scheduled times in 24 h'), sum.missed > 0)}
      {tile('/runs?last=day', t('Success rate'), percent(sum.success_rate), t('in 24 h'))}
      {tile('/runs?state=running', t('Running now'), sum.running.toLocaleString(), t('runs'))}
      {c && (told === false && !c.firing_alerts && !c.unsent_messages ? tile('/alerts/rules', t('Active alerts'), '—', t('nobody is notified: no rule is on'))
        : tile('/alerts', t('Active alerts'), c.firing_alerts.toLocaleString(), c.unsent_messages ? t('{n} messages unsent', { n: c.unsent_messages }) : t('firing now'), c.firing_alerts > 0))}
      {c && tile('/cluster#nodes', t('Nodes'), `${c.nodes_ready} / ${c.nodes}`, c.nodes_gone > 0 ? t('{n} nodes gone', { n: c.nodes_gone }) : t('ready'), c.nodes_gone > 0 || c.nodes_ready < c.nodes)}
    </div>
  );
}

/** The jobs that failed, the noisiest first, with what the last failure said. */
function Failed({ items, cut, more }: { items: JobStat[]; cut: boolean; more: boolean }) {
  return (
    <Card id="failed" title={t('Failed in the last 24 hours')} more={<Link class="small" to="/jobs?show=failing">{t('Failing jobs')}</Link>}>
      {items.length === 0 ? <Empty icon="check" title={t('Nothing failed in the last 24 hours')} /> : (
        <div class="scroll">
          <table class="failed">
            <thead><tr><th>{t('Job')}</th><th>{t('Status')}</th><th class="num">{t('Failures')}</th><th class="num thin-hide">{t('Success')}</th><th class="num thin-hide">p95</th><th>{t('Last failure')}</th></tr></thead>
            <tbody>{items.map((s) => <FailedRow key={s.job_id} s={s} cut={cut} />)}</tbody>
          </table>
        </div>
      )}
      {more && <p class="in faint small">{t('Only the {n} noisiest jobs are shown.', { n: items.length })}</p>}
    </Card>
  );
}

function FailedRow({ s, cut }: { s: JobStat; cut: boolean }) {
  const f = s.last_failure, n = failures(s).toLocaleString(), health = s.health?.at_least ? { ...s.health, failures: undefined } : s.health; // the numbers beside it say more
  const said = f && (f.last_line ?? (f.reason ? reasonSaid(f.reason, f.reason_code) : undefined));
  return (
    <tr>
      <td class="job"><Link to={`/jobs/${s.job_id}`}>{nameOf(s)}</Link></td>
      <td>{health ? <HealthBadge health={health} /> : <Badge tone="mute">{t('deleted')}</Badge>}</td>
      <td class="num nowrap">{failures(s) > 0 && <Link to={`/runs${query({ job_id: s.job_id, last: 'day' })}`}>{cut ? n : t('{n} of {all}', { n, all: ran(s).toLocaleString() })}</Link>}{s.missed > 0 && <div><Link class="small" to={`/runs${query({ job_id: s.job_id, outcome: 'missed', last: 'day' })}`}>{t('{n} missed', { n: s.missed.toLocaleString() })}</Link></div>}</td>
      <td class="num thin-hide nowrap">{percent(s.success_rate)}</td>
      <td class="num thin-hide nowrap">{s.duration_p95_ms === undefined ? '—' : span(s.duration_p95_ms)}</td>
      <td class="said">{f && <>
        <Link to={`/runs/${f.run_id}`}><When at={f.due} /> <OutcomeBadge run={{ state: 'ended', outcome: f.outcome }} /></Link>{f.node && <span class="faint small"> · {f.node}</span>}{f.recovered && <span class="faint small"> · {t('succeeded since')}</span>}
        {said && <div class="mono small lastline" title={said}><bdi>{said}</bdi></div>}
      </>}</td>
    </tr>
  );
}

/** A list that is asked for, with what is wrong with it. That the node does not respond is told above all. */
const Listed = ({ asked: a, children }: { asked: Asked<unknown>; children: ComponentChildren }) => (
  <>
    {a.problem && (!a.data || a.problem.status !== 0) && <ProblemBox problem={a.problem} again={a.reload} />}
    {a.data ? children : a.loading && <Loading rows={2} />}
  </>
);

function Running({ n }: { n: number }) {
  const list = useGet<Page<Run>>(n > 0 ? '/api/v1/runs?state=running&limit=8' : null, { every: 10_000, on: ['run'] });
  const runs = list.data?.items ?? [], none = <p class="in faint">{t('No runs in progress')}</p>;
  return (
    <Card title={t('Running now')} more={<Link class="small" to="/runs?state=running">{t('Show all')}</Link>}>
      {n === 0 ? none : <Listed asked={list}>{runs.length === 0 ? none : (
        <table><tbody>{runs.map((r) => (
          <tr key={r.id}><td class="job"><Link to={`/jobs/${r.job_id}`}>{nameOf(r)}</Link></td><td class="nowrap"><Link to={`/runs/${r.id}`}><Took run={r} /></Link></td><td class="num thin-hide faint small">{r.node}</td></tr>
        ))}</tbody></table>
      )}</Listed>}
    </Card>
  );
}

/** The due times of the last night that were not started. */
function Missed({ missed }: { missed: number }) {
  const night = usePreset('night')!;
  const list = useGet<Page<Run>>(missed > 0 ? `/api/v1/runs${query({ outcome: 'missed', from: isoOf(night.from), to: isoOf(night.to), limit: 50 })}` : null, { every: 60_000 });
  const jobs = new Map<string, { run: Run; n: number }>(), none = <p class="in faint">{t('No scheduled time was missed last night')}</p>;
  for (const run of list.data?.items ?? []) jobs.set(run.job_id, { run: jobs.get(run.job_id)?.run ?? run, n: (jobs.get(run.job_id)?.n ?? 0) + (run.count ?? 1) });
  return (
    <Card title={t('Missed last night')} more={<Link class="small" to="/timeline/slots">{presetText('night')}</Link>}>
      {missed === 0 ? none : <Listed asked={list}>{jobs.size === 0 ? none : (
        <table><tbody>{[...jobs.values()].slice(0, 8).map(({ run: r, n }) => (
          <tr key={r.job_id}><td class="job"><Link to={`/jobs/${r.job_id}`}>{nameOf(r)}</Link></td><td class="nowrap"><Link to={`/jobs/${r.job_id}/why${query({ at: r.due })}`}><When at={r.due} /></Link></td><td class="num">{n > 1 && `${n.toLocaleString()}×`}</td></tr>
        ))}</tbody></table>
      )}</Listed>}
    </Card>
  );
}

interface Alert { id: string; severity: string; summary: string; first: string; run?: string; job_id?: string }

function Firing() {
  const n = counts.value?.firing_alerts ?? 0;
  const list = useGet<Page<Alert>>(n > 0 ? '/api/v1/alerts?state=firing&limit=6' : null, { every: 15_000, on: ['alert'], always: true });
  if (n === 0) return null;
  return (
    <Card title={t('Active alerts')} more={<Link class="small" to="/alerts">{t('Show all')}</Link>}>
      <Listed asked={list}><table><tbody>{list.data?.items.map((a) => (
        <tr key={a.id}><td class="job"><Link to={a.run ? `/runs/${a.run}` : a.job_id ? `/jobs/${a.job_id}` : '/alerts'}><Said text={a.summary} by={alertSaid} /></Link></td><td class="num nowrap faint small"><Ago at={a.first} /></td></tr>
      ))}</tbody></table></Listed>
    </Card>
  );
}

/** The nodes, those that are gone first. */
function Nodes() {
  const list = useGet<Page<NodeView>>('/api/v1/nodes', { every: 15_000, on: ['node'] });
  const bad = (n: NodeView) => (n.state === 'gone' ? 0 : n.state === 'ready' ? 2 : 1);
  const nodes = list.data?.items.filter((n) => n.state !== 'left').sort((a, b) => bad(a) - bad(b)) ?? [];
  return (
    <Card title={t('Nodes')} more={<Link class="small" to="/cluster">{t('Cluster')}</Link>}>
      <Listed asked={list}>
        <table><tbody>{nodes.slice(0, 10).map((n) => (
          <tr key={n.name}><td class="job"><Link to={`/runs${query({ node: n.name })}`}>{n.name}</Link></td><td><Badge {...nodeState(n)} /></td>
            <td class="num small">{n.state === 'gone' ? <>{n.gone && <Ago at={n.gone} />}{(n.lost_runs ?? 0) > 0 && <Link to={`/runs${query({ node: n.name, outcome: 'lost' })}`}> · {t('{n} runs lost', { n: n.lost_runs! })}</Link>}</> : <span class="faint">{t('{n} running', { n: n.executing })}</span>}</td></tr>
        ))}</tbody></table>
      </Listed>
      {nodes.length > 10 && <p class="in faint small">{t('and {n} more', { n: nodes.length - 10 })}</p>}
    </Card>
  );
}

/** What is due next. Jobs that are due more often than every hour are left out: they would fill the list. */
function Next() {
  const list = useGet<Ahead>('next', {
    every: 30_000, on: ['job'], always: true, read: async (_, signal) => ({ data: await dueTimes({ from: now(), to: now() + 24 * 3600_000, most: 24, limit: 8 }, signal), etag: '' }),
  }), { data } = list;
  return (
    <Card title={t('Next runs')} more={<Link class="small" to="/upcoming">{t('Upcoming')}</Link>}>
      <Listed asked={list}>{data?.items.length === 0 ? <p class="in faint">{t('No upcoming runs')}</p> : (
        <table><tbody>{data?.items.map((d) => (
          <tr key={d.job_id + d.due}><td class="job"><Link to={`/jobs/${d.job_id}`}>{nameOf(d)}</Link></td><td class="nowrap"><When at={d.due} zone={d.timezone} /></td><td class="num nowrap faint small"><Until at={d.due} /></td></tr>
        ))}</tbody></table>
      )}</Listed>
      {(data?.frequent_count ?? 0) > 0 && <p class="in faint small">{t('Without {n} jobs that run more often than hourly.', { n: data!.frequent_count!.toLocaleString() })}</p>}
    </Card>
  );
}

/** What a new cluster shows. */
const First = () => (
  <section class="card">
    <Empty icon="clock" title={t('No jobs yet')}>
      <p>{t('A job says what to run and when: a command, an HTTP request or a Go function.')}</p>
      {mayAnywhere('admin') && <Link class="button primary" to="/jobs/new"><Icon name="plus" />{t('Create the first job')}</Link>}
      {mayAnywhere('admin') && <Link to="/jobs/import">{t('Paste a crontab, or a file from "go-crontab export".')}</Link>}
    </Empty>
  </section>
);
