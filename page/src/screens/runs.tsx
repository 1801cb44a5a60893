import { query } from '../api';
import { t } from '../i18n';
import { useGet } from '../live';
import { Choice, Head } from '../parts/basic';
import { OutcomeSelect, RunList, TriggerSelect } from '../parts/runtable';
import { here, setQuery } from '../router';
import type { NodeView, Page } from '../types';

export function Runs() {
  const q = here.value.search, of = (k: string) => q.get(k) ?? '';
  const nodes = useGet<Page<NodeView>>('/api/v1/nodes', { every: 30_000, on: ['node'] });
  const names = [...new Set([...(nodes.data?.items.map((n) => n.name) ?? []), ...(of('node') ? [of('node')] : [])])];
  const path = `/api/v1/runs${query({ state: of('state'), outcome: of('outcome'), trigger: of('trigger'), node: of('node'), app: of('app'), job_id: of('job_id'), from: of('from'), to: of('to'), limit: 50 })}`;
  return (
    <>
      <Head title={t('Runs')} />
      <div class="filters">
        <Choice label={t('State')} value={of('state')} set={(v) => setQuery({ state: v, ...(v === 'running' && { outcome: undefined }) })}
          options={[{ value: '', text: t('All') }, { value: 'running', text: t('running') }, { value: 'ended', text: t('ended') }]} />
        {of('state') !== 'running' && <OutcomeSelect value={of('outcome')} />}
        <TriggerSelect value={of('trigger')} />
        <select aria-label={t('Node')} value={of('node')} onChange={(e) => setQuery({ node: e.currentTarget.value })}>
          <option value="">{t('Any node')}</option>
          {names.map((n) => <option key={n} value={n}>{n}</option>)}
        </select>
        {(['app', 'job_id', 'from', 'to'] as const).map((k) => of(k) && <button key={k} class="chip" aria-pressed="true" onClick={() => setQuery({ [k]: undefined })}>{k}: {of(k)} ×</button>)}
      </div>
      <section class="card"><RunList path={path} withJob empty={of('state') === 'running' ? t('Nothing runs now') : undefined} /></section>
    </>
  );
}
