import { useEffect, useRef, useState } from 'preact/hooks';
import { may, now } from '../api';
import { t, type Text } from '../i18n';
import { following, onNews, usePages } from '../live';
import { Link } from '../router';
import { ms, span, zoneShown } from '../time';
import type { Page, Run } from '../types';
import { killRun } from './actions';
import { Button, Empty, Loading, OutcomeBadge, outcomes, outcomeText, ProblemBox, Range, Reason, useCounted, When } from './basic';
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
  const list = usePages<Run>(path, keyOf, { every: 2500, on: ['run'], job });
  const first = useRef(list.data);
  first.current = list.data;
  const [heard, hear] = useState<{ of?: Page<Run>; runs: Map<string, Run> }>({ runs: new Map() }); // of runs on the first page, until that is read again
  useEffect(() => onNews((n) => {
    const r: Run | undefined = n?.type === 'run' && following.value ? n.data : undefined;
    if (!r?.id) return;
    list.renew((x) => (keyOf(x) !== keyOf(r) ? x : fits(path, r) ? r : null));
    const of = first.current;
    if (of?.items.some((x) => keyOf(x) === keyOf(r))) hear((h) => ({ of, runs: new Map(h.of === of ? h.runs : []).set(keyOf(r), r) }));
  }), [path]);
  if (heard.of !== list.data) return list;
  return { ...list, items: list.items.map((x) => heard.runs.get(keyOf(x)) ?? x).filter((x) => !heard.runs.has(keyOf(x)) || fits(path, x)) };
}

const triggers: Record<Run['trigger'], Text> = { schedule: 'scheduled', manual: 'manual', backfill: 'backfill', after: 'after a job' };
export const triggerText = (r: Run) => t(triggers[r.trigger]);

export function RunTable({ runs, withJob, zone }: { runs: Run[]; withJob?: boolean; zone?: string }) {
  const canKill = (r: Run) => r.state === 'running' && may('operator', r.app), killable = runs.some(canKill);
  return (
    <div class="scroll">
      <table class="runs">
        <thead><tr><th>{t('Scheduled time')}{zone && zone !== zoneShown() && <> <span class="faint nowrap">{zone}</span></>}</th>{withJob && <th>{t('Job')}</th>}<th>{t('Result')}</th><th class="num thin-hide">{t('Delay')}</th><th class={withJob ? 'num thin-hide' : 'num'}>{t('Duration')}</th><th class="thin-hide">{t('Node')}</th><th class="thin-hide">{t('Reason')}</th>{killable && <th><span class="unseen">{t('Actions')}</span></th>}</tr></thead>
        <tbody>
          {runs.map((r) => (
            <tr key={keyOf(r)}>
              <td class="nowrap"><Link to={`/runs/${r.id}`}>{r.until ? <Range from={r.due} to={r.until} zone={zone} /> : <When at={r.due} zone={zone} in={zone} />}</Link></td>
              {withJob && <td class="job"><Link to={`/jobs/${r.job_id}`}><bdi>{r.job}</bdi></Link>{r.app !== 'default' && <span class="faint small"> · <bdi>{r.app}</bdi></span>}</td>}
              <td><Link to={`/runs/${r.id}`} class="plain"><OutcomeBadge run={r} /></Link>{r.attempt > 1 && <span class="faint small"> {t('attempt {n}', { n: r.attempt })}</span>}</td>
              <td class="num thin-hide"><Late run={r} /></td>
              <td class={withJob ? 'num thin-hide' : 'num'}><Took run={r} /></td>
              <td class="thin-hide"><Link to={`/runs?node=${encodeURIComponent(r.node)}`}>{r.node}</Link></td>
              <td class="thin-hide reason">{r.trigger !== 'schedule' && <span class="tag">{triggerText(r)}</span>} {r.reason ? <Reason run={r} zone={zone} /> : r.exit_code ? t('exit code {n}', { n: r.exit_code }) : ''}</td>
              {killable && <td class="num">{canKill(r) && <Button look="quiet" icon="stop" class="inrow" aria-label={t('Kill this run of {job}', { job: r.job })} work={() => killRun(r, () => undefined)}><span class="thin-hide">{t('Kill')}</span></Button>}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export const OutcomeSelect = ({ value }: { value: string }) => (
  <select aria-label={t('Result')} value={value} onChange={(e) => setQuery({ outcome: e.currentTarget.value })}>
    <option value="">{t('Any result')}</option>
    {outcomes.map((o) => <option key={o} value={o}>{t(outcomeText[o])}</option>)}
  </select>
);
export const TriggerSelect = ({ value }: { value: string }) => (
  <select aria-label={t('Trigger')} value={value} onChange={(e) => setQuery({ trigger: e.currentTarget.value })}>
    <option value="">{t('Any trigger')}</option>
    {(Object.keys(triggers) as Run['trigger'][]).map((o) => <option key={o} value={o}>{t(triggers[o])}</option>)}
  </select>
);

export function RunList({ path, withJob, zone, job, empty }: { path: string; withJob?: boolean; zone?: string; job?: string; empty?: string }) {
  const { items: runs, problem, loading, reload, more } = useRuns(path, job);
  return (
    <>
      {problem && <ProblemBox problem={problem} again={reload} />}
      {loading ? <Loading rows={8} /> : runs.length === 0 ? !problem && <Empty icon="runs" title={empty ?? t('No matching runs')} /> : <RunTable runs={runs} withJob={withJob} zone={zone} />}
      {more && <div class="more-row"><Button work={more}>{t('Show older')}</Button></div>}
    </>
  );
}
