import { useEffect, useState } from 'preact/hooks';
import { get } from '../api';
import { said, t, type Text } from '../i18n';
import { following, onNews, useGet } from '../live';
import { now } from '../api';
import { Link } from '../router';
import { inZone, ms, span } from '../time';
import type { Page, Run } from '../types';
import { Button, Empty, Loading, OutcomeBadge, outcomes, outcomeText, ProblemBox, useCounted, When } from './basic';
import { setQuery } from '../router';

/** How long a run took, counting while it goes on. */
export function Took({ run }: { run: Run }) {
  const counted = useCounted(() => span(Math.max(0, Math.round((now() - ms(run.started)) / 1000) * 1000)), [run.started]);
  return !run.started ? <span class="faint">—</span> : <>{run.ended ? span(ms(run.ended) - ms(run.started)) : counted}</>;
}

export const Late = ({ run }: { run: Run }) => (run.lateness_ms === undefined ? <span class="faint">—</span> : <>{run.lateness_ms < 1 ? `<${span(1)}` : span(run.lateness_ms)}</>);

const keyOf = (r: Run) => r.id + r.due;
/** Whether a run still belongs to the list of a path. */
const fits = (path: string, r: Run) => { const q = new URLSearchParams(path.split('?')[1]); return (['state', 'outcome'] as const).every((k) => !q.get(k) || q.get(k) === r[k]); };

/** A list of runs that follows what happens, and has older ones on demand. */
export function useRuns(path: string, job?: string) {
  const first = useGet<Page<Run>>(path, { every: 2500, on: ['run'], job });
  const [older, setOlder] = useState<{ path: string; items: Run[]; next?: string }>();
  useEffect(() => setOlder(undefined), [path]);
  const base = first.data?.items ?? [], seen = new Set(base.map(keyOf));
  const rest = older?.path === path ? older.items.filter((r) => !seen.has(keyOf(r))) : [];
  // What slides off the first page is kept as it was there last. If the page no longer meets what was loaded, what lies
  // between was never seen: it begins anew.
  useEffect(() => setOlder((o) => {
    if (o?.path !== path || !first.data) return o;
    if (first.data.next === undefined || !o.items.some((r) => seen.has(keyOf(r)))) return undefined;
    const last = ms(base[base.length - 1].due);
    return { ...o, items: [...base, ...o.items.filter((r) => !seen.has(keyOf(r)) && ms(r.due) <= last)] };
  }), [first.data]);
  useEffect(() => onNews((n) => {
    const r: Run | undefined = n?.type === 'run' && following.value ? n.data : undefined;
    if (r?.id) setOlder((o) => (o?.items.some((x) => keyOf(x) === keyOf(r)) ? { ...o, items: o.items.flatMap((x) => (keyOf(x) !== keyOf(r) ? x : fits(o.path, r) ? r : [])) } : o));
  }), []);
  const next = older?.path === path ? older.next : first.data?.next;
  const more = next === undefined ? undefined : async () => {
    const page = await get<Page<Run>>(`${path}${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(next)}`);
    const had = older?.path === path;
    setOlder((o) => (had && o?.path !== path ? o : { path, items: [...(had ? o!.items : base), ...page.items], next: page.next })); // unless it has begun anew meanwhile
  };
  return { runs: [...base, ...rest], problem: first.problem, loading: first.loading, reload: first.reload, more };
}

const triggers: Record<Run['trigger'], Text> = { schedule: 'by schedule', manual: 'by hand', backfill: 'by backfill' };
export const triggerText = (r: Run) => t(triggers[r.trigger]);

export function RunTable({ runs, withJob, zone }: { runs: Run[]; withJob?: boolean; zone?: string }) {
  return (
    <div class="scroll">
      <table class="runs">
        <thead><tr><th>{t('Due')}</th>{withJob && <th>{t('Job')}</th>}<th>{t('Outcome')}</th><th class="num thin-hide">{t('Late')}</th><th class={withJob ? 'num thin-hide' : 'num'}>{t('Took')}</th><th class="thin-hide">{t('Node')}</th><th class="thin-hide">{t('Reason')}</th></tr></thead>
        <tbody>
          {runs.map((r) => (
            <tr key={keyOf(r)}>
              <td class="nowrap"><Link to={`/runs/${r.id}`}><When at={r.due} zone={zone} /></Link>{r.until && <span class="faint"> – <When at={r.until} zone={zone} /></span>}</td>
              {withJob && <td><Link to={`/jobs/${r.job_id}`}><bdi>{r.job}</bdi></Link>{r.app !== 'default' && <span class="faint small"> · <bdi>{r.app}</bdi></span>}</td>}
              <td><Link to={`/runs/${r.id}`} class="plain"><OutcomeBadge run={r} /></Link>{r.attempt > 1 && <span class="faint small"> {t('attempt {n}', { n: r.attempt })}</span>}</td>
              <td class="num thin-hide"><Late run={r} /></td>
              <td class={withJob ? 'num thin-hide' : 'num'}><Took run={r} /></td>
              <td class="thin-hide"><Link to={`/runs?node=${encodeURIComponent(r.node)}`}>{r.node}</Link></td>
              <td class="thin-hide reason">{r.trigger !== 'schedule' && <span class="tag">{triggerText(r)}</span>} <bdi>{r.reason ? inZone(said(r.reason)) : (r.exit_code ? t('exit code {n}', { n: r.exit_code }) : '')}</bdi></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export const OutcomeSelect = ({ value }: { value: string }) => (
  <select aria-label={t('Outcome')} value={value} onChange={(e) => setQuery({ outcome: e.currentTarget.value })}>
    <option value="">{t('Any outcome')}</option>
    {outcomes.map((o) => <option key={o} value={o}>{t(outcomeText[o])}</option>)}
  </select>
);
export const TriggerSelect = ({ value }: { value: string }) => (
  <select aria-label={t('Started by')} value={value} onChange={(e) => setQuery({ trigger: e.currentTarget.value })}>
    <option value="">{t('However started')}</option>
    {(Object.keys(triggers) as Run['trigger'][]).map((o) => <option key={o} value={o}>{t(triggers[o])}</option>)}
  </select>
);

export function RunList({ path, withJob, zone, job, empty }: { path: string; withJob?: boolean; zone?: string; job?: string; empty?: string }) {
  const { runs, problem, loading, reload, more } = useRuns(path, job);
  return (
    <>
      {problem && <ProblemBox problem={problem} again={reload} />}
      {loading ? <Loading rows={8} /> : runs.length === 0 ? !problem && <Empty icon="runs" title={empty ?? t('No such runs')} /> : <RunTable runs={runs} withJob={withJob} zone={zone} />}
      {more && <div class="more-row"><Button work={more}>{t('Older ones')}</Button></div>}
    </>
  );
}
