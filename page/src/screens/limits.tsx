import { useState } from 'preact/hooks';
import { call, may, Problem } from '../api';
import { t, type Text } from '../i18n';
import { useGet } from '../live';
import { Button, Card, closeDialog, closing, Dialog, Empty, Field, Loading, Notice, ProblemBox, say, show } from '../parts/basic';
import { Diff } from '../parts/diff';
import { Link } from '../router';
import { size } from '../time';
import type { Change, Page } from '../types';

// What apps may take of the cluster, and what each has now. An admin of the whole cluster sets it.

interface Limits { jobs?: number; runs_per_minute?: number; waiting?: number; output?: string }
interface AppLimits extends Limits { app: string; use?: { jobs: number; runs_per_minute: number; waiting: number; output: number } }

const fields = ['jobs', 'runs_per_minute', 'waiting', 'output'] as const;
type Field = (typeof fields)[number];
const heads: Record<Field, Text> = { jobs: 'Jobs', runs_per_minute: 'Runs per minute', waiting: 'Waiting runs', output: 'Kept output' };

export function AppLimitsCard() {
  const { data, problem, loading, reload } = useGet<Page<AppLimits>>('/api/v1/limits', { every: 10_000, on: ['change'] });
  const can = may('admin'), items = data?.items ?? [];
  const edit = (of?: AppLimits) => show(() => <LimitsDialog key={of?.app ?? ''} of={of} edit={edit} done={() => void reload()} />);
  return (
    <section id="limits"><Card title={t('App limits')} more={can && data && <Button icon="plus" work={() => edit()}>{t('New app limits')}</Button>}>
      {problem && <ProblemBox problem={problem} again={reload} />}
      {loading && <Loading rows={2} />}
      {data && items.length === 0 && <Empty icon="jobs" title={t('No app has limits')}><p>{t('Every app can use the whole cluster. Add limits to protect other apps.')}</p></Empty>}
      {items.length > 0 && (
        <div class="scroll"><table class="limits">
          <thead><tr><th>{t('App')}</th>{fields.map((f) => <th key={f} class="num">{t(heads[f])}</th>)}<th><span class="unseen">{t('Actions')}</span></th></tr></thead>
          <tbody>{items.map((l) => (
            <tr key={l.app}>
              <td><Link to={`/jobs?app=${encodeURIComponent(l.app)}`}><bdi>{l.app}</bdi></Link></td>
              {fields.map((f) => <td key={f} class="num" data-label={t(heads[f])}><Used of={l} field={f} /></td>)}
              <td class="num">{can && <Button look="quiet" icon="edit" aria-label={t('Edit the limits of {app}', { app: l.app })} work={() => edit(l)} />}</td>
            </tr>
          ))}</tbody>
        </table></div>
      )}
      {items.length > 0 && <p class="in faint small">{t('Current use / limit.')} {t('Kept output is counted about once a minute.')} <Link to="/audit?kind=limits">{t('Change history')}</Link></p>}
      <p class="in faint small who">{can ? t('Cluster admins can change this.') : t('Needs {role} role', { role: t('admin') })}</p>
    </Card></section>
  );
}

/** What an app has of one limit. Without a limit only jobs and waiting runs are counted. */
function Used({ of, field }: { of: AppLimits; field: Field }) {
  const most = of[field], used = of.use?.[field] ?? 0;
  if (most === undefined) return <span class="faint">{field === 'jobs' || field === 'waiting' ? used.toLocaleString() : '—'}</span>;
  const full = field === 'output' ? used >= 0.99 * bytes(String(most)) : used >= Number(most);
  return (
    <span class={full ? 'warn-text' : ''} title={full ? t('At its limit') : undefined}>
      {field === 'output' ? size(used) : used.toLocaleString()} <span class="faint">/ {field === 'output' ? size(bytes(String(most))) : Number(most).toLocaleString()}</span>
      {full && <span class="unseen">{t('At its limit')}</span>}
    </span>
  );
}

/** A size as the server writes it, in bytes. */
function bytes(text: string): number {
  const [, n = '0', unit = ''] = /^(\d+)([KMGT]?)i?B$/.exec(text) ?? [];
  return Number(n) * 1024 ** (' KMGT'.indexOf(unit || ' '));
}

function LimitsDialog({ of, edit, done }: { of?: AppLimits; edit: (of: AppLimits) => void; done: () => void }) {
  const text = (v: unknown) => (v === undefined ? '' : String(v));
  const [app, setApp] = useState(of?.app ?? ''), [now, set] = useState<Record<Field, string>>({ jobs: text(of?.jobs), runs_per_minute: text(of?.runs_per_minute), waiting: text(of?.waiting), output: text(of?.output) });
  const [sure, setSure] = useState(false), [problem, setProblem] = useState<Problem>();
  const known = useGet<Page<{ name: string }>>('/api/v1/apps'), list = useGet<Page<AppLimits>>('/api/v1/limits');
  const name = app.trim(), there = of ? undefined : list.data?.items.find((l) => l.app === name); // new limits take the place of none
  const absent = name !== '' && known.data && !known.data.items.some((a) => a.name === name);

  const body: Record<string, unknown> = {};
  for (const f of fields) if (now[f].trim()) body[f] = f !== 'output' && !Number.isNaN(Number(now[f])) ? Number(now[f]) : now[f].trim();
  const none = Object.keys(body).length === 0;
  const changes: Change[] = fields.filter((f) => text(of?.[f]) !== text(body[f])).map((f) => ({ field: t(heads[f]), was: of?.[f], becomes: body[f] }));
  const path = `/api/v1/apps/${encodeURIComponent(name)}/limits`;

  const save = async () => {
    const close = closing();
    try {
      if (none) await call(path, { method: 'DELETE' });
      else await call(path, { method: 'PUT', body, headers: of ? {} : { 'If-None-Match': '*' } });
      close();
      say(none ? t('Limits removed') : t('Limits saved'));
      done();
    } catch (err) {
      if (!(err instanceof Problem)) throw err;
      if (err.status === 412) await list.reload(); // somebody has set some meanwhile: they are shown
      else setProblem(err);
      setSure(false);
    }
  };

  const box = (f: Field, label: Text, place: string, hint: Text) => (
    <Field id={'l' + f} label={t(label)} error={problem?.errors.find((e) => e.field === f)} hint={t(hint)}>
      <input id={'l' + f} class="mono" placeholder={place} value={now[f]} inputMode={f === 'output' ? undefined : 'numeric'} autocomplete="off" onInput={(e) => set({ ...now, [f]: e.currentTarget.value })} />
    </Field>
  );
  return (
    <Dialog title={of ? t('Limits of the app {app}', { app: of.app }) : t('New app limits')} close={closeDialog}>
      {sure ? (
        <div class="body">
          <p><b><bdi>{name}</bdi></b></p>
          <Diff changes={changes} />
          {none && <p>{t('The app will have no limits.')}</p>}
          {absent && <Notice look="warn"><p>{t('The app {app} has no jobs yet.', { app: name })}</p></Notice>}
          {body.output !== undefined && body.output !== of?.output && <Notice look="warn"><p>{t('If the app keeps more output than this, the oldest is deleted within minutes. It cannot be restored; the runs themselves are kept.')}</p></Notice>}
          <p class="faint small">{t('All nodes apply it within three seconds.')}</p>
        </div>
      ) : (
        <div class="body">
          {!of && <Field id="lapp" label={t('App')} hint={absent ? t('The app {app} has no jobs yet.', { app: name }) : undefined}><input id="lapp" list="lapps" autoFocus autocomplete="off" value={app} onInput={(e) => setApp(e.currentTarget.value)} /></Field>}
          <datalist id="lapps">{known.data?.items.map((a) => <option key={a.name} value={a.name} />)}</datalist>
          {there && <Notice look="warn" action={<Button icon="edit" work={() => edit(there)}>{t('Edit')}</Button>}><b>{t('The app {app} already has limits', { app: there.app })}</b></Notice>}
          {!of && !list.data && list.problem && <ProblemBox problem={list.problem} again={list.reload} />}
          {box('jobs', 'Jobs', '200', 'No more jobs can be created')}
          {box('runs_per_minute', 'Runs per minute', '600', 'Further runs are skipped')}
          {box('waiting', 'Waiting runs', '1000', 'Further runs are skipped instead of waiting')}
          {box('output', 'Kept output', '2GiB', 'Of all runs together; the oldest output is deleted first')}
          <p class="faint small">{t('Empty fields have no limit.')}</p>
          {problem && problem.errors.every((e) => !(e.field in now)) && <ProblemBox problem={problem} />}
        </div>
      )}
      <footer>{sure ? <><Button work={() => setSure(false)}>{t('Back')}</Button><Button look="primary" icon="check" autoFocus work={save}>{t('Save')}</Button></>
        : <><Button work={closeDialog}>{t('Cancel')}</Button><Button look="primary" disabled={changes.length === 0 || !name || (!of && (!list.data || !!there))} work={() => { setProblem(undefined); setSure(true); }}>{t('Review changes')}</Button></>}</footer>
    </Dialog>
  );
}
