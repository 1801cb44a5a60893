import { query } from '../api';
import { explained, t } from '../i18n';
import { useGet } from '../live';
import { Link } from '../router';
import { inSpans, inZone, stamp, zoneShown } from '../time';
import type { Explanation } from '../types';
import { closeDialog, Dialog, Loading, Notice, OutcomeBadge, ProblemBox, show, When } from './basic';

/** Shows why a due time ran or did not run. */
export const showWhy = (job: { id: string; name: string }, due: string, zone?: string) => show(() => <WhyDialog job={job} due={due} zone={zone ?? zoneShown()} />);

function WhyDialog({ job, due, zone }: { job: { id: string; name: string }; due: string; zone: string }) {
  const { data: e, problem, loading } = useGet<Explanation>(`/api/v1/jobs/${job.id}/explain${query({ at: due })}`, { every: 0 });
  const said = e && explained(e.cause, e.answer);
  return (
    <Dialog title={`${job.name}, ${stamp(due, zone)}${zone === zoneShown() ? '' : ` ${zone}`}`} close={closeDialog}>
      <div class="body">
        {problem && <ProblemBox problem={problem} />}
        {loading && <Loading rows={2} />}
        {e && said && <Notice look={e.cause === 'succeeded' ? 'good' : 'warn'} icon="question"><b>{inSpans(inZone(said, zone))}</b>{said !== e.answer && <p class="faint small" lang="en">{inSpans(inZone(e.answer, zone))}</p>}</Notice>}
        {e?.runs && <ul>{e.runs.map((r) => <li key={r.id}><Link to={`/runs/${r.id}`} onClick={closeDialog}><When at={r.started ?? r.due} in={zone} /> <OutcomeBadge run={r} /></Link> <span class="faint small">{r.node}</span></li>)}</ul>}
      </div>
      <footer><Link class="button" to={`/jobs/${job.id}/why${query({ at: due })}`} onClick={closeDialog}>{t('More')}</Link></footer>
    </Dialog>
  );
}
