import { useEffect, useState } from 'preact/hooks';
import { get, mayAnywhere, query } from '../api';
import { t } from '../i18n';
import { useGet } from '../live';
import { RerunFailed } from '../parts/actions';
import { AppField } from '../parts/apps';
import { Choice, Head } from '../parts/basic';
import { isoOf, listRanges, RangeChips, usePreset } from '../parts/ranges';
import { OutcomeSelect, RunList, TriggerSelect } from '../parts/runtable';
import { here, setQuery, useOneOf } from '../router';
import { instantOf, stamp } from '../time';
import type { Job, Node as NodeView, Page } from '../types';

export function Runs() {
  const q = here.value.search, of = (k: string) => q.get(k) ?? '';
  const nodes = useGet<Page<NodeView>>('/api/v1/nodes', { every: 30_000, on: ['node'] });
  const names = [...new Set([...(nodes.data?.items.map((n) => n.name) ?? []), ...(of('node') ? [of('node')] : [])])];
  const [dated, setDated] = useState(!!of('from') || !!of('to'));
  const last = useOneOf('last', listRanges), preset = of('from') || of('to') ? undefined : last || undefined, range = usePreset(preset);
  const path = `/api/v1/runs${query({ state: of('state'), outcome: of('outcome'), trigger: of('trigger'), node: of('node'), app: of('app'), job_id: of('job_id'), from: of('from') || isoOf(range?.from), to: of('to') || isoOf(range?.to), limit: 50 })}`;
  return (
    <>
      <Head title={t('Runs')}>{mayAnywhere('operator') && of('state') !== 'running' && <RerunFailed filter={{ job_id: of('job_id'), app: of('app'), node: of('node'), outcome: of('outcome'), from: of('from') || isoOf(range?.from), to: of('to') || isoOf(range?.to) }} />}</Head>
      <div class="filters">
        <Choice label={t('State')} value={of('state')} set={(v) => setQuery({ state: v, ...(v === 'running' && { outcome: undefined }) })}
          options={[{ value: '', text: t('All') }, { value: 'running', text: t('running') }, { value: 'ended', text: t('ended') }]} />
        {of('state') !== 'running' && <OutcomeSelect value={of('outcome')} />}
        <TriggerSelect value={of('trigger')} />
        <select aria-label={t('Node')} value={of('node')} onChange={(e) => setQuery({ node: e.currentTarget.value })}>
          <option value="">{t('Any node')}</option>
          {names.map((n) => <option key={n} value={n}>{n}</option>)}
        </select>
        <JobField key={of('job_id')} id={of('job_id')} />
        <AppField value={of('app')} set={(v) => setQuery({ app: v })} />
        <RangeChips of={listRanges} value={preset} set={(p) => setQuery({ last: p, from: undefined, to: undefined })} clear={() => setQuery({ last: undefined })} />
        {!dated && <button class="chip" onClick={() => setDated(true)}>{t('Other range…')}</button>}
        {dated && (['from', 'to'] as const).map((k) => (
          <label key={k} class="check small">{k === 'from' ? t('Scheduled from') : t('until')}<input type="datetime-local" class="short" value={of(k) && stamp(of(k)).slice(0, 16).replace(' ', 'T')} onChange={(e) => setQuery({ last: undefined, [k]: instantOf(e.currentTarget.value) ?? undefined })} /></label>
        ))}
      </div>
      <section class="card"><RunList path={path} withJob empty={of('state') === 'running' ? t('No runs in progress') : undefined} /></section>
    </>
  );
}

/** A job by its name; the address has its id. */
function JobField({ id }: { id: string }) {
  const [text, setText] = useState(''), [jobs, setJobs] = useState<Job[]>([]), [name, setName] = useState('');
  const nameOf = (j: Job) => (j.app === 'default' ? j.name : `${j.app}/${j.name}`);
  useEffect(() => {
    if (!id) return;
    setName(id); // until its name is known, and if it was deleted
    const stop = new AbortController();
    get<Job>(`/api/v1/jobs/${encodeURIComponent(id)}`, stop.signal).then((j) => setName(nameOf(j)), () => undefined);
    return () => stop.abort();
  }, [id]);
  useEffect(() => {
    const word = text.trim().split('/').pop();
    if (!word) return;
    const stop = new AbortController();
    const timer = setTimeout(() => get<Page<Job>>(`/api/v1/jobs${query({ name: word, limit: 20 })}`, stop.signal).then((p) => setJobs(p.items), () => undefined), 150);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [text]);
  if (id) return <button class="chip" aria-pressed="true" onClick={() => setQuery({ job_id: undefined })}>{t('Job')}: <bdi>{name}</bdi> ×</button>;
  const take = (v: string) => { const j = jobs.find((x) => nameOf(x) === v.trim()); if (j) setQuery({ job_id: j.id }); };
  return (
    <>
      <input type="search" class="short" list="jobs-named" aria-label={t('Job')} placeholder={t('Job')} autocomplete="off" value={text} onInput={(e) => { setText(e.currentTarget.value); take(e.currentTarget.value); }}
        onKeyDown={(e) => { if (e.key === 'Enter') { take(text); if (jobs.length === 1) setQuery({ job_id: jobs[0].id }); } }} />
      <datalist id="jobs-named">{jobs.map((j) => <option key={j.id} value={nameOf(j)} />)}</datalist>
    </>
  );
}
