import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { parseAllDocuments } from 'yaml';
import { call, mayAnywhere, onceKey, post, Problem } from '../api';
import { noteSaid, t, type Text } from '../i18n';
import { Badge, Button, Card, Choice, Empty, Field, Head, Loading, Notice, ProblemBox, Said, say, type Tone } from '../parts/basic';
import { Diff } from '../parts/diff';
import { Icon } from '../parts/icon';
import { go, Link } from '../router';
import { inZone, myZone } from '../time';
import type { Apply as Applied, AppliedJob, AppliedObject, Crontab } from '../types';

// Takes over what somebody has: a crontab, or a file as `export` writes it. What it would make and change is shown while it
// is pasted, and nothing is done before somebody says so.

type Format = 'crontab' | 'file';
type Body = Record<string, unknown[]>;
const lists = ['groups', 'calendars', 'channels', 'rules', 'retention', 'pauses', 'jobs'] as const;
const listText: Record<(typeof lists)[number], Text> = { groups: 'group', calendars: 'calendar', channels: 'alert channel', rules: 'alert rule', retention: 'retention', pauses: 'pause', jobs: 'job' };
const actionText: Record<AppliedObject['action'], [Text, Tone]> = { created: ['new', 'good'], updated: ['changed', 'warn'], unchanged: ['unchanged', 'mute'], deleted: ['Deleted', 'bad'] };

/** A file begins with a field, a list or a bracket; a crontab with times, or with NAME=VALUE. */
function formatOf(text: string): Format {
  const first = text.split('\n').map((l) => l.trim()).find((l) => l && !l.startsWith('#')) ?? '';
  return /^([{[]|---|- |["'$\w]+\s*:(\s|$))/.test(first) ? 'file' : 'crontab';
}

/** A list that begins with a text or a number, such as the names of a job's calendars. */
const hasTexts = (v: unknown) => Array.isArray(v) && v.length > 0 && (typeof v[0] !== 'object' || v[0] === null);

/** Tells an object with lists from a job, as `apply -f` does. */
const isSet = (v: object) => lists.some((l) => l in v && !hasTexts((v as Body)[l])) && !('name' in v);

/** What a file has, as it is applied. */
function readFile(text: string): Body {
  const body: Body = { jobs: [] };
  if (/^\s*[{[]/.test(text)) text = text.replace(/([}\]]\s*\n)[ \t]*(?=[{[])/g, '$1--- '); // JSON values behind each other
  for (const doc of parseAllDocuments(text, { merge: true })) {
    if (!('contents' in doc)) break;
    const e = doc.errors[0];
    if (e) throw new Error(e.message.split('\n')[0]);
    const v: any = doc.toJS();
    if (v === null || v === undefined) continue;
    if (typeof v !== 'object') throw new Error(t('Expected jobs, as in a crontab or an exported file.'));
    if (Array.isArray(v)) { body.jobs.push(...v); continue; }
    delete v.$schema; // is for editors
    if (!isSet(v)) { body.jobs.push(v); continue; }
    for (const [k, items] of Object.entries(v)) {
      if (items === null) continue;
      if (!Array.isArray(items)) throw new Error(t('{name} must be a list', { name: k }));
      body[k] = [...(body[k] ?? []), ...items];
    }
  }
  return body;
}

/** What the server says of a text. */
interface Looked { crontab?: Crontab; body?: Body; would?: Applied; wrong?: string; problem?: Problem }

/** What was typed: it outlives a reload. */
interface Kept { text: string; chosen?: Format; app: string; zone: string; system: boolean; selector: string; timeout: string }
const draft = 'draft:import';
function kept(): Kept {
  const blank: Kept = { text: '', app: '', zone: myZone, system: false, selector: '', timeout: '' };
  try { return { ...blank, ...JSON.parse(sessionStorage.getItem(draft) ?? '{}') }; } catch { return blank; } // not ours
}

export function Import() {
  const [start] = useState(kept), [text, setText] = useState(start.text), [chosen, choose] = useState(start.chosen);
  const [app, setApp] = useState(start.app), [zone, setZone] = useState(start.zone), [system, setSystem] = useState(start.system);
  const [selector, setSelector] = useState(start.selector), [timeout, setLimit] = useState(start.timeout);
  const [left, setLeft] = useState(''), [replaced, setReplaced] = useState(''); // to which lines that are left out, and jobs that are replaced, somebody has agreed
  const [looked, setLooked] = useState<{ of: string } & Looked>({ of: '' }), [problem, setProblem] = useState<Problem>(), [turn, setTurn] = useState(0);
  const format = chosen ?? formatOf(text), blank = text.trim() === '';
  const all = JSON.stringify([format, text, ...(format === 'crontab' ? [app.trim(), zone.trim(), system, selector.trim(), timeout.trim()] : [])]), now = useRef(all);
  now.current = all;
  const key = useMemo(onceKey, [all, turn]); // who presses again means the same
  useEffect(() => {
    try { if (blank) sessionStorage.removeItem(draft); else sessionStorage.setItem(draft, JSON.stringify({ text, chosen, app, zone, system, selector, timeout } satisfies Kept)); } catch { /* it is too large to be kept */ }
  }, [text, chosen, app, zone, system, selector, timeout]);

  useEffect(() => setProblem(undefined), [all]);
  useEffect(() => {
    if (blank) return;
    const stop = new AbortController();
    const look = async (): Promise<Looked> => {
      const out: Looked = {};
      try {
        if (format === 'crontab') {
          const given = { text: text.endsWith('\n') ? text : text + '\n', timezone: zone.trim(), system, selector: selector.trim(), timeout: timeout.trim(), ...(app.trim() && { app: app.trim() }) };
          out.crontab = (await call<Crontab>('/api/v1/crontab', { method: 'POST', body: given, signal: stop.signal })).data;
          out.body = { jobs: out.crontab.jobs.map((j) => j.job) };
        } else {
          JSON.stringify(out.body = readFile(text)); // what goes round and round cannot be sent
        }
        out.would = (await call<Applied>('/api/v1/apply', { method: 'POST', body: { ...out.body, dry_run: true }, signal: stop.signal })).data;
      } catch (err) {
        if (err instanceof Problem) out.problem = err;
        else out.wrong = String((err as Error).message ?? err);
      }
      return out;
    };
    const timer = setTimeout(() => look().then((l) => { if (!stop.signal.aborted) setLooked({ of: all, ...l }); }), 400);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [all, turn]);

  if (!mayAnywhere('admin')) return <Empty icon="lock" title={t('Changing jobs needs the admin role')}><Link class="button" to="/jobs">{t('Jobs')}</Link></Empty>;
  const is = looked.of === all ? looked : undefined, refused = looked.crontab?.refused ?? [];
  const count = (action: AppliedObject['action']) => (looked.would ? lists.reduce((n, l) => n + (looked.would![l] ?? []).filter((o) => o.action === action).length, 0) : 0);
  const changes = count('created') + count('updated');
  // Names of crontabs come from their programs alone: a job that is there may be quite another one.
  const taken = looked.crontab ? looked.would?.jobs.filter((o) => o.action === 'updated') ?? [] : [];
  const leaving = JSON.stringify(refused), replacing = JSON.stringify(taken), agreed = (refused.length === 0 || left === leaving) && (taken.length === 0 || replaced === replacing);
  const apply = async () => {
    if (!is?.would || !is.body) return;
    setProblem(undefined);
    try { // jobs as they were looked at: what somebody changes meanwhile is not written over
      const jobs = is.body.jobs.map((j, i) => ({ ...(j as object), version: is.would!.jobs[i]?.version ?? 0 }));
      const done = await post<Applied>('/api/v1/apply', { ...is.body, jobs }, key);
      sessionStorage.removeItem(draft);
      say(t('{n} objects created or changed', { n: done.changed }));
      go(app.trim() && format === 'crontab' ? `/jobs?app=${encodeURIComponent(app.trim())}` : '/jobs');
    } catch (err) {
      if (!(err instanceof Problem)) throw err;
      if (now.current === all) setProblem(err);
      setTurn((n) => n + 1); // it may be another cluster by now
    }
  };
  /** Where something wrong stands: a line of the crontab, or a job of the file. */
  const place = (field: string) => {
    if (field === 'timezone') return t('Time zone');
    if (field === 'selector') return t('Node selector');
    if (field === 'timeout') return t('Timeout');
    const m = /^jobs\[(\d+)\]\.?(.*)$/.exec(field);
    if (!m) return field;
    const line = looked.crontab?.jobs[+m[1]]?.line, name = (looked.body?.jobs[+m[1]] as { name?: string } | undefined)?.name;
    return [line ? t('line {n}', { n: line }) : name ?? field.split('.')[0], m[2]].filter(Boolean).join(' · ');
  };
  const shown = problem ?? looked.problem;

  return (
    <>
      <Head title={t('Import jobs')} crumb={<Link to="/jobs">{t('Jobs')}</Link>} sub={<span>{t('Paste a crontab, or a file from "go-crontab export".')}</span>} />
      <div class="editor">
        <Card title={t('Your crontab')} more={<Choice label={t('Format')} value={format} set={choose} options={[{ value: 'crontab', text: 'crontab' }, { value: 'file', text: 'YAML, JSON' }]} />}>
          <textarea class={`source ${looked.wrong ? 'bad' : ''}`} aria-label={t('Your crontab')} spellcheck={false} autocomplete="off" rows={Math.min(30, Math.max(14, text.split('\n').length + 1))} value={text}
            placeholder={'# crontab -l\nMAILTO=ops@example.com\n0 3 * * * /usr/local/bin/backup.sh'} onInput={(e) => setText(e.currentTarget.value)} />
          {format === 'crontab' && (
            <div class="in stack">
              <div class="fields">
                <Field id="i-app" label={t('App')} hint={t('A namespace for related jobs')}><input id="i-app" placeholder="default" value={app} onInput={(e) => setApp(e.currentTarget.value)} /></Field>
                <Field id="i-zone" label={t('Time zone')} hint={t('Of the machine the crontab comes from')}><input id="i-zone" class="mono" value={zone} onInput={(e) => setZone(e.currentTarget.value)} /></Field>
                <Field id="i-selector" label={t('Node selector')} hint={t('Without one, any node runs the jobs')}><input id="i-selector" class="mono" placeholder="node=web-1" value={selector} onInput={(e) => setSelector(e.currentTarget.value)} /></Field>
                <Field id="i-timeout" label={t('Timeout')} hint={t('Longer runs are stopped')}><input id="i-timeout" placeholder="2h" value={timeout} onInput={(e) => setLimit(e.currentTarget.value)} /></Field>
              </div>
              <label class="check"><input type="checkbox" checked={system} onChange={() => setSystem(!system)} />{t('Lines contain a user name, as in /etc/crontab')}</label>
              {!system && looked.crontab?.jobs.some((j) => /^root\s/.test(String((j.job as { command?: string }).command))) && <Notice look="warn"><p>{t('A command begins with root. Do the lines contain a user name?')}</p></Notice>}
            </div>
          )}
        </Card>
        <div class="stack" aria-live="polite">
          {blank ? <Empty icon="download" title={t('Preview')}><p>{t('Paste a crontab to see which jobs will be created. Nothing changes before you import it.')}</p></Empty> : looked.of === '' ? <Loading rows={4} /> : <>
            {looked.wrong && <Notice look="bad"><b>{t('Cannot read the text')}</b><p>{looked.wrong}</p></Notice>}
            {shown && (shown.errors.length ? <Notice look="bad"><b>{t('Some values are invalid')}</b>{shown.errors.map((e) => <p key={e.field}><b>{place(e.field)}</b> <Said text={e} /></p>)}</Notice> : <ProblemBox problem={shown} again={() => setTurn((n) => n + 1)} />)}
            {refused.length > 0 && (
              <Notice look="warn"><b>{t('{n} lines skipped', { n: refused.length })}</b>
                {refused.map((r) => <p key={r.line}><b>{r.line ? t('line {n}', { n: r.line }) : ''}</b> <Said text={r} by={noteSaid} /></p>)}
                {changes > 0 && <label class="check"><input type="checkbox" checked={left === leaving} onChange={() => setLeft(left === leaving ? '' : leaving)} />{t('Import without them', { n: refused.length })}</label>}
              </Notice>
            )}
            {taken.length > 0 && (
              <Notice look="warn"><b>{t('{n} jobs with these names already exist', { n: taken.length })}</b>
                <p>{t('If they are different jobs, import into another app.', { n: taken.length })}</p>
                <label class="check"><input type="checkbox" checked={replaced === replacing} onChange={() => setReplaced(replaced === replacing ? '' : replacing)} />{t('Replace them', { n: taken.length })}</label>
              </Notice>
            )}
            {looked.would && <Would looked={looked} sum={[['created', count('created')], ['updated', count('updated')], ['unchanged', count('unchanged')]]} />}
            {looked.crontab?.notes && <Card title={t('Differences from cron')}><ul class="keep in small">{looked.crontab.notes.map((n, i) => <li key={i}>{n.line ? `${t('line {n}', { n: n.line })}: ` : ''}<Said text={n} by={noteSaid} /></li>)}</ul></Card>}
          </>}
        </div>
      </div>
      <div class="savebar">
        <Button look="primary" icon="check" disabled={!is?.would || changes === 0 || !agreed} work={apply}>{t('Import')}</Button>
        <Link class="button" to="/jobs">{t('Cancel')}</Link>
        {format === 'crontab' && changes > 0 && <span class="small faint">{t('Afterwards, remove the lines from the crontab, or both will run them.')}</span>}
      </div>
    </>
  );
}

/** What would be made and changed, one thing after the other. */
function Would({ looked: { would, crontab }, sum }: { looked: Looked; sum: [AppliedObject['action'], number][] }) {
  const [turned, turn] = useState<Record<string, boolean>>({}); // open or closed by hand: what a crontab would replace is open
  return (
    <Card title={t('Preview')} more={sum.map(([a, n]) => n > 0 && <Badge key={a} tone={actionText[a][1]}>{n} {t(actionText[a][0])}</Badge>)}>
      {sum.every(([, n]) => n === 0) ? <Empty icon="question" title={t('Nothing to import')} /> : <table><tbody>
        {lists.flatMap((l) => (would![l] ?? []).map((o: AppliedObject & Partial<AppliedJob>, i) => {
          const id = `${l}${i}`, line = l === 'jobs' ? crontab?.jobs[i] : undefined, [text, tone] = actionText[o.action], open = !!o.changes?.length && (turned[id] ?? (!!line && o.action === 'updated'));
          return [
            <tr key={id}>
              <td class="nowrap"><Badge tone={tone}>{t(text)}</Badge></td>
              <td><b><bdi>{o.name || o.app || t('The whole cluster')}</bdi></b> <span class="faint small">{l === 'jobs' ? o.app !== 'default' && <bdi>{o.app}</bdi> : t(listText[l])}</span>
                {line && <div class="small">{inZone(line.words)} <span class="faint">· {t('line {n}', { n: line.line })}</span></div>}
                {line?.notes?.map((n) => <div key={n.message} class="small faint"><Icon name="warning" /> <Said text={n} by={noteSaid} /></div>)}
                {o.warnings?.map((w) => <div key={w.message} class="small faint"><Icon name="warning" /> <Said text={w} /></div>)}</td>
              <td class="num">{!!o.changes?.length && <Button look="quiet" icon="down" aria-expanded={open} aria-label={t('{n} fields', { n: o.changes.length })} title={t('{n} fields', { n: o.changes.length })} work={() => turn({ ...turned, [id]: !open })} />}</td>
            </tr>,
            open && <tr key={id + 'd'}><td colSpan={3}><Diff changes={o.changes!} /></td></tr>,
          ];
        }))}
      </tbody></table>}
    </Card>
  );
}
