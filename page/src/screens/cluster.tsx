import { Suspense, lazy } from 'preact/compat';
import { may, onceKey, post, Problem } from '../api';
import { t } from '../i18n';
import { useGet } from '../live';
import { askPause, resumeCluster } from '../parts/actions';
import { Ago, ask, Badge, Button, Card, Empty, Head, Loading, ProblemBox, say } from '../parts/basic';
import { Icon } from '../parts/icon';
import { nodeState } from '../parts/nodes';
import { Link } from '../router';
import { coarse, ms, span } from '../time';
import { now } from '../api';
import { Doctor } from './doctor';
import type { Cluster, Node as NodeView, Page, Pause } from '../types';
import { useMemo } from 'preact/hooks';

const Plot = lazy(() => import('../parts/plot').then((m) => m.Plot));

interface Stats {
  now: string; executing: number; prepared: number; waiting: number; backlog: number; most: number; slots: number; step_seconds: number;
  series: { at: string; starts: number; ends: number; failed: number; lateness_p50_ms?: number; lateness_p99_ms?: number }[];
  last_minute: { starts_per_second: number; ends_per_second: number; lateness_p50_ms?: number; lateness_p99_ms?: number };
}

/** Two lengths of time, the unit once if it is the same. */
function pair(a: number, b: number) {
  const [x, y] = [span(a), span(b)], unit = y.split(' ').pop();
  return (x.split(' ').length === 2 && x.endsWith(' ' + unit) ? x.slice(0, -(unit!.length + 1)) : x) + ' / ' + y;
}

/** Nodes without a session. */
const away = new Set<NodeView['state']>(['absent', 'gone', 'left']);

export function ClusterScreen() {
  const c = useGet<Cluster>('/api/v1/cluster', { every: 3000, on: ['node'], always: true });
  const n = useGet<Page<NodeView>>('/api/v1/nodes', { every: 3000, on: ['node'], always: true });
  const s = useGet<Stats>('/api/v1/stats?minutes=15', { every: 10_000, always: true });
  const pauses = useGet<Page<Pause>>('/api/v1/pauses', { every: 10_000, on: ['pause'] });
  const operate = may('operator'); // of the whole cluster: nodes are nobody's app
  const all = pauses.data?.items.find((p) => p.scope === 'cluster' && !p.ended);
  const nodes = [...(n.data?.items ?? [])].sort((a, b) => Number(b.state === 'gone') - Number(a.state === 'gone'));
  const sum = (k: 'executing' | 'prepared' | 'slots') => nodes.reduce((a, x) => a + (away.has(x.state) ? 0 : x[k]), 0);
  const st = s.data;
  const offs = c.data?.sessions.map((x) => Math.abs(x.clock_offset_ms)) ?? [];
  return (
    <>
      <Head title={t('Cluster')} sub={c.data && <><span>{c.data.server}</span><span>go-crontab {c.data.version}</span><span>{t('connected to {node}', { node: c.data.node })}</span></>}>
        {operate && (all
          ? <Button icon="play" work={() => resumeCluster(pauses.reload)}>{t('Resume cluster')}</Button>
          : <Button icon="pause" work={() => askPause(t('Pause the whole cluster'), '/api/v1/cluster/pause', () => { say(t('Cluster paused')); void pauses.reload(); })}>{t('Pause cluster')}</Button>)}
      </Head>
      {(c.problem ?? n.problem) && <ProblemBox problem={(c.problem ?? n.problem) as Problem} again={() => Promise.all([c.reload(), n.reload()])} />}
      <div class="tiles">
        <Link class="tile" to="/runs?state=running"><span>{t('Running')}</span><b>{(st?.executing ?? sum('executing')).toLocaleString()}</b><small>{t('of {n} slots', { n: (st?.slots ?? sum('slots')).toLocaleString() })}</small></Link>
        <Link class="tile" to="/upcoming"><span>{t('Prefetched')}</span><b>{(st?.prepared ?? sum('prepared')).toLocaleString()}</b><small>{t('start within seconds')}</small></Link>
        {st && <Link class="tile" to="/jobs?show=waiting"><span>{t('Waiting')}</span><b>{st.waiting.toLocaleString()}</b><small>{t('for another run, a group or a node')}</small></Link>}
        {st && <Link class="tile" to="/jobs?sort=due"><span>{t('Overdue')}</span><b class={st.backlog > 0 ? 'bad' : ''}>{st.backlog.toLocaleString()}</b><small>{t('past their scheduled time')}</small></Link>}
        {st && <Link class="tile" to="/runs"><span>{t('Starts per second')}</span><b>{+st.last_minute.starts_per_second.toFixed(2)}</b><small>{t('in the last minute')}</small></Link>}
        {st && <Link class="tile" to="/timeline"><span>{t('Delay')} p50 / p99</span><b>{st.last_minute.lateness_p50_ms === undefined ? '—' : pair(st.last_minute.lateness_p50_ms, st.last_minute.lateness_p99_ms ?? 0)}</b><small>{t('in the last minute')}</small></Link>}
        {!st && <Link class="tile" to="/cluster#nodes"><span>{t('Nodes')}</span><b>{nodes.filter((x) => x.state === 'ready').length}</b><small>{t('ready of {n}', { n: nodes.filter((x) => x.state !== 'left').length })}</small></Link>}
        {c.data && <Link class="tile" to="/cluster#nodes"><span>{t('Clock offset')}</span><b>{offs.length ? span(Math.max(...offs)) : '—'}</b><small>{t('largest, against MySQL')}</small></Link>}
      </div>
      <div class="stack">
        {st && st.series.length > 2 && <Figures st={st} />}
        <Card id="nodes" title={t('Nodes')}>
          {!n.data ? n.loading && <Loading /> : nodes.length === 0 ? <Empty icon="cluster" title={t('No running nodes')}><p>{t('Start a node with go-crontab serve.')}</p></Empty> : (
            <div class="scroll">
              <table class="nodes">
                <thead><tr><th>{t('Node')}</th><th>{t('State')}</th><th>{t('Slots')}</th><th class="num thin-hide lease">{t('Lease age')}</th><th class="num thin-hide">{t('Clock offset')}</th><th class="thin-hide">{t('Uptime')}</th><th class="thin-hide">{t('Labels')}</th><th><span class="unseen">{t('Actions')}</span></th></tr></thead>
                <tbody>{nodes.map((x) => <NodeRow key={x.name} n={x} c={c.data} operate={operate} reload={n.reload} />)}</tbody>
              </table>
            </div>
          )}
        </Card>
        <Doctor />
        {c.data && <Facts c={c.data} />}
      </div>
    </>
  );
}

function NodeRow({ n, c, operate, reload }: { n: NodeView; c?: Cluster; operate: boolean; reload: () => Promise<void> }) {
  const s = n.sessions[0], more = c?.sessions.find((x) => x.id === s?.id);
  const change = (what: 'cordon' | 'drain', title: string, text: string) => ask({
    title, text: <p>{text}</p>, button: what === 'drain' ? t('Drain') : t('Cordon'),
    work: async () => { await post(`/api/v1/nodes/${encodeURIComponent(n.name)}/${what}`, {}, onceKey()); await reload(); },
  });
  return (
    <tr class={n.state === 'gone' ? 'gone' : undefined}>
      <td><Link class="nowrap" to={`/runs?node=${encodeURIComponent(n.name)}`}><b>{n.name}</b></Link>{s?.address && <div class="faint small mono thin-hide">{s.address}</div>}{n.reason && <div class="small faint"><bdi>{n.reason}</bdi>{n.by && ` (${n.by})`}</div>}</td>
      <td><Badge {...nodeState(n)} />{n.gone && <div class="small faint"><Ago at={n.gone} />{(n.lost_runs ?? 0) > 0 && <>, <Link class="bad-text" to={`/runs?outcome=lost&node=${encodeURIComponent(n.name)}`}>{t('{n} runs lost', { n: n.lost_runs! })}</Link></>}</div>}</td>
      <td style={{ minWidth: '96px' }}>{n.slots > 0 && <><div class="meter" role="img" aria-label={t('{n} on {all} slots', { n: n.executing, all: n.slots })}><i style={{ width: `${Math.min(100, (100 * n.executing) / n.slots)}%` }} /><i class="next" style={{ width: `${Math.min(100, (100 * n.prepared) / n.slots)}%` }} /></div><span class="small faint" title={t('An HTTP request takes 1/16 of a slot')}><Link to={`/runs?state=running&node=${encodeURIComponent(n.name)}`}>{t('{n} running', { n: n.executing })}</Link>{t(', ')}{t('{n} prefetched of {all}', { n: n.prepared, all: n.slots })}</span></>}</td>
      <td class="num thin-hide lease">{s ? span(s.beat_age_ms) : '—'}</td>
      <td class="num thin-hide">{more ? `${more.clock_offset_ms >= 0 ? '+' : '−'}${span(more.clock_offset_ms)}` : '—'}</td>
      <td class="thin-hide nowrap">{s ? <span title={s.started}>{coarse(now() - ms(s.started))}</span> : n.since ? <Ago at={n.since} /> : '—'}</td>
      <td class="thin-hide"><span class="row" style={{ gap: '4px' }}>{Object.entries(n.labels).filter(([k, v]) => !(k === 'node' && v === n.name) && !k.startsWith('handler/')).map(([k, v]) => <span key={k} class="tag">{k}{v && '=' + v}</span>)}{n.handlers.map((h) => <span key={h} class="tag busy">{h}</span>)}</span></td>
      <td class="num nowrap">{operate && (n.cordoned || n.draining
        ? <Button work={async () => { await post(`/api/v1/nodes/${encodeURIComponent(n.name)}/uncordon`, {}, onceKey()); await reload(); }}>{t('Uncordon')}</Button>
        : !away.has(n.state) && <><Button look="quiet" work={() => change('cordon', t('Cordon {node}?', { node: n.name }), t('The node starts no new runs. Runs in progress finish.'))}>{t('Cordon')}</Button><Button look="quiet" class="thin-hide" work={() => change('drain', t('Drain {node}?', { node: n.name }), t('The node starts no new runs. Runs in progress finish; then it is shown as drained.'))}>{t('Drain')}</Button></>)}</td>
    </tr>
  );
}

function Figures({ st }: { st: Stats }) {
  const x = useMemo(() => st.series.map((p) => ms(p.at) / 1000), [st]);
  const late = useMemo(() => [
    { label: 'p50', colour: '--good-dot', values: st.series.map((p) => p.lateness_p50_ms ?? null) },
    { label: 'p99', colour: '--warn-dot', values: st.series.map((p) => p.lateness_p99_ms ?? null) }], [st]);
  const rate = useMemo(() => [
    { label: 'starts', colour: '--busy-dot', values: st.series.map((p) => p.starts / st.step_seconds) },
    { label: 'failed', colour: '--bad-dot', values: st.series.map((p) => p.failed / st.step_seconds) }], [st]);
  return (
    <div class="halves">
      <Card title={t('Delay')} more={<span class="legend"><span><i style={{ background: 'var(--good-dot)' }} />p50</span><span><i style={{ background: 'var(--warn-dot)' }} />p99</span></span>}>
        <Suspense fallback={<div class="plot" />}><Plot label={t('Delay')} x={x} series={late} /></Suspense>
      </Card>
      <Card title={t('Starts per second')} more={<span class="legend"><span><i style={{ background: 'var(--busy-dot)' }} />{t('starts')}</span><span><i style={{ background: 'var(--bad-dot)' }} />{t('not successful')}</span></span>}>
        <Suspense fallback={<div class="plot" />}><Plot label={t('Starts per second')} x={x} series={rate} y={(v) => String(+v.toFixed(2))} /></Suspense>
      </Card>
    </div>
  );
}

const Facts = ({ c }: { c: Cluster }) => (
  <Card title={t('Details')}>
    <dl class="facts in">
      <div><dt>{t('Database')}</dt><dd>{c.server}</dd></div>
      <div><dt>{t('Session expiry')}</dt><dd>{c.session_expiry ?? '—'}</dd></div>
      <div><dt>{t('Versions')}</dt><dd>{[...new Set(c.sessions.map((s) => s.version))].join(', ')}</dd></div>
      <div><dt>{t('API reference')}</dt><dd><a href="/docs">/docs</a> <Icon name="right" /></dd></div>
    </dl>
  </Card>
);
