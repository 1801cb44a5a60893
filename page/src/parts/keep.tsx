import { t } from '../i18n';
import { useGet } from '../live';
import { Link } from '../router';
import { coarse, milliseconds } from '../time';

// Which records of runs are kept: what a job says counts more than the rule of its app, and that more than the rule of
// the cluster, each field by itself.

export interface Keep { age?: string; runs?: number; bytes?: string; failures?: string }
export interface Rule extends Keep { scope: 'app' | 'cluster'; app?: string; archive?: boolean }
export interface Retention {
  items: Rule[];
  work?: { ended?: string; removed: number; archived: number; failures: number; error?: string; error_at?: string };
}
export const keepFields = ['age', 'runs', 'bytes', 'failures'] as const;
type Field = (typeof keepFields)[number];

const dayLong = 86_400_000;
/** A duration as the server writes it (2160h), in days where it has whole ones; unchanged if it is none. */
function length(text: string): string {
  const sum = milliseconds(text);
  if (sum === undefined) return text;
  return sum > 0 && sum % dayLong === 0 ? t('{n} days', { n: sum / dayLong }) : coarse(sum);
}

/** What one field of a rule says. */
export function keepWords(field: Field, k: Keep): string {
  switch (field) {
    case 'age': return t('Runs are kept for {age}', { age: length(String(k.age)) });
    case 'runs': return t('Only the latest {n} scheduled times are kept', { n: Number(k.runs).toLocaleString() });
    case 'bytes': return t('Runs are kept up to {size} of output', { size: String(k.bytes) });
    case 'failures': return t('Unsuccessful runs are kept for at least {age}', { age: length(String(k.failures)) });
  }
}

export const useRetention = () => useGet<Retention>('/api/v1/retention', { every: 30_000, on: ['change'] });

/** The rule that is in force for a job, in words, and whose word each part is. */
export function KeepInForce({ own, app }: { own?: Keep; app: string }) {
  const { data } = useRetention();
  if (!data) return null;
  const ofApp = data.items.find((r) => r.scope === 'app' && r.app === app), ofAll = data.items.find((r) => r.scope === 'cluster');
  const given = (k: Keep | undefined, f: Field) => k !== undefined && k !== null && typeof k === 'object' && k[f] !== undefined && (k[f] as unknown) !== '' && k[f] !== 0;
  const lines = keepFields.flatMap((f) => {
    const [whose, rule] = given(own, f) ? ['job', own!] as const : given(ofApp, f) ? ['app', ofApp!] as const : given(ofAll, f) ? ['cluster', ofAll!] as const : [];
    return rule ? [{ f, whose, text: keepWords(f, rule) }] : [];
  });
  const bounded = lines.some((l) => l.f !== 'failures');
  return (
    <ul class="keep">
      {!bounded && <li>{t('All runs are kept: no retention rule applies')}</li>}
      {bounded && lines.map((l) => (
        <li key={l.f}>{l.text} <span class="faint small nowrap">{l.whose === 'job' ? t('job setting') : l.whose === 'app' ? <Link to="/settings/retention">{t('app setting')}</Link> : <Link to="/settings/retention">{t('cluster default')}</Link>}</span></li>
      ))}
      {bounded && ofAll?.archive && <li>{t('Runs are deleted only after the archive command has stored them')}</li>}
    </ul>
  );
}
