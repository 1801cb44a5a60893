import { t } from '../i18n';
import type { Job, Param, ParamValue, Message as Sentence } from '../types';
import { Field } from './basic';

// Parameters of jobs: the fields in which somebody gives values to a run.

/** The parameters that a request can give. */
const givable = (j: Pick<Job, 'params'>) => Object.entries(j.params ?? {}).filter(([, p]) => !p.secret);
export const takesParams = (j: Pick<Job, 'params'>) => givable(j).length > 0;

const relative = /^(today|yesterday)/;
const usual = (p: Param) => (p.default === undefined || p.default === null || (p.type === 'date' && relative.test(String(p.default))) ? '' : String(p.default));

/** What the fields show at first. */
export const usualParams = (j: Pick<Job, 'params'>): Record<string, string> => Object.fromEntries(givable(j).map(([name, p]) => [name, usual(p)]));

/** A text as a value of a type. What is no such value stays a text, and the server says what is wrong with it. */
export function valueOf(type: string | undefined, text: string): ParamValue {
  if ((type === 'integer' || type === 'number') && text.trim() !== '' && isFinite(Number(text))) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

/** The values that differ from the defaults. */
export function paramsGiven(j: Pick<Job, 'params'>, typed: Record<string, string>): Record<string, ParamValue> {
  const out: Record<string, ParamValue> = {};
  for (const [name, p] of givable(j)) {
    const text = typed[name] ?? '';
    if (text === usual(p) || (text === '' && p.type !== 'string')) continue;
    out[name] = valueOf(p.type, text);
  }
  return out;
}

export function ParamFields({ job: j, typed, set, error }: { job: Pick<Job, 'params'>; typed: Record<string, string>; set: (typed: Record<string, string>) => void; error: (field: string) => Sentence | undefined }) {
  return (
    <div class="fields">
      {givable(j).map(([name, p]) => {
        const id = `param-${name}`, value = typed[name] ?? '', change = (v: string) => set({ ...typed, [name]: v });
        const choices = p.type === 'boolean' ? ['true', 'false'] : p.enum?.map(String);
        const hint = [p.description, p.default !== undefined && usual(p) === '' && t('Default: {value}', { value: String(p.default) }), p.required && t('required')].filter(Boolean).join(' · ');
        return (
          <Field key={name} id={id} label={name} hint={hint || undefined} error={error(`params.${name}`)}>
            {choices
              ? <select id={id} value={value} onChange={(e) => change(e.currentTarget.value)}>{usual(p) === '' && <option value="" />}{choices.map((c) => <option key={c} value={c}>{c}</option>)}</select>
              : <input id={id} class="mono" type={p.type === 'date' ? 'date' : p.type === 'integer' || p.type === 'number' ? 'number' : 'text'} step={p.type === 'number' ? 'any' : undefined}
                  value={value} onInput={(e) => change(e.currentTarget.value)} />}
          </Field>
        );
      })}
    </div>
  );
}
