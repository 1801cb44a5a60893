import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Document, isCollection, parseDocument, stringify, visit } from 'yaml';
import { call, may, mayAnywhere, now, onceKey, post, Problem, type FieldProblem } from '../api';
import { t, type Text } from '../i18n';
import { upTo, useGet } from '../live';
import { Ago, ask, Button, Card, Choice, closeDialog, closing, Dialog, Empty, Field, Head, Loading, Notice, ProblemBox, problemTitle, Said, say, show } from '../parts/basic';
import { Diff, differences } from '../parts/diff';
import { Dues, whenOf } from '../parts/duelist';
import { Icon } from '../parts/icon';
import { KeepInForce } from '../parts/keep';
import { isUsual } from '../parts/usual';
import { valueOf } from '../parts/params';
import { go, here, leaveGuard, Link } from '../router';
import { inZone, myZone } from '../time';
import type { Apply as Applied, CalendarItem, Group, Job, Page, Param, Preview, Message as Sentence } from '../types';

// The editor. Its text (YAML or JSON) is the one truth: the form shows what stands in it, and writes into it, so that
// comments and fields that the form does not know survive. Nothing is saved before it was looked at once more.

type Spec = Record<string, any>;
type Format = 'yaml' | 'json';
type Path = (string | number)[];

const answered = ['id', 'paused', 'pause', 'status', 'error', 'version', 'next_due', 'last_due', 'created', 'updated', 'warnings', 'waiting', 'health', 'last_runs'];
/** The fields of which a job has one: when it is due. */
const kindsOfWhen = ['schedule', 'schedules', 'every', 'delay', 'after', 'manual', 'at'] as const;
const order = ['name', 'app', 'description', 'owner', 'labels', 'folder', 'schedule', 'schedules', 'every', 'at', 'delay', 'after', 'manual', 'timezone', 'start', 'end', 'max_fires', 'jitter', 'calendars', 'on_closed', 'weeks', 'command', 'http', 'handler', 'payload', 'stdin'];

/** The definition of a job, without what the server alone says. */
export function specOf(j: Job): Spec {
  const out: Spec = {}, all: Spec = { ...j };
  const keys = Object.keys(j).filter((k) => !answered.includes(k));
  const at = (k: string) => { const i = order.indexOf(k); return i < 0 ? order.length : i; };
  for (const k of keys.sort((a, b) => at(a) - at(b))) {
    const v = all[k];
    if (v === undefined || v === '' || (v && typeof v === 'object' && Object.keys(v).length === 0)) continue;
    out[k] = v;
  }
  return out;
}

const write = (spec: Spec, format: Format) => (format === 'json' ? JSON.stringify(spec, null, 2) + '\n' : stringify(spec, { lineWidth: 0 }));

interface Read { spec: Spec; doc?: Document; wrong?: { line: number; message: string } }
function read(text: string, format: Format): Read {
  if (format === 'json') {
    try {
      const spec = JSON.parse(text.trim() || '{}');
      if (!spec || typeof spec !== 'object' || Array.isArray(spec)) return { spec: {}, wrong: { line: 1, message: t('A job must be an object with fields.') } };
      return { spec };
    } catch (err) {
      const at = /position (\d+)/.exec(String(err));
      return { spec: {}, wrong: { line: at ? text.slice(0, +at[1]).split('\n').length : 1, message: (err as Error).message } };
    }
  }
  const doc = parseDocument(text, { prettyErrors: true });
  const e = doc.errors[0];
  if (e) return { spec: {}, wrong: { line: e.linePos?.[0].line ?? 1, message: e.message.split('\n')[0] } };
  let spec: any;
  try {
    spec = doc.toJS() ?? {};
  } catch (err) { // an alias of nothing, as `*/5` is one while it is typed
    let line = 1;
    visit(doc, { Alias: (_, a) => { if (!a.resolve(doc)) { line = text.slice(0, a.range?.[0]).split('\n').length; return visit.BREAK; } } });
    return { spec: {}, wrong: { line, message: (err as Error).message } };
  }
  if (typeof spec !== 'object' || Array.isArray(spec)) return { spec: {}, wrong: { line: 1, message: t('A job must be an object with fields.') } };
  return { spec, doc };
}

const at = (o: any, path: Path): any => path.reduce((v, k) => (v === null || v === undefined ? undefined : v[k]), o);
const blank = (v: unknown) => v === undefined || v === '' || v === null || (typeof v === 'object' && Object.keys(v as object).length === 0);

/** The text with a field set, or taken away. */
function put(text: string, format: Format, path: Path, value: unknown): string {
  const { spec, wrong, doc } = read(text, format);
  if (wrong) return text;
  if (doc) try {
    if (blank(value)) {
      if (doc.hasIn(path)) doc.deleteIn(path);
      for (let p = path.slice(0, -1); p.length && blank(at(doc.toJS() ?? {}, p)); p = p.slice(0, -1)) if (doc.hasIn(p)) doc.deleteIn(p);
    } else {
      if (!isCollection(doc.contents)) doc.contents = null; // `null` or `~`
      for (let i = 1; i < path.length; i++) { // what stands where fields are to be: nothing, another value, or an alias
        const p = path.slice(0, i), was = at(spec, p);
        if (doc.hasIn(p) && !isCollection(doc.getIn(p, true))) doc.setIn(p, doc.createNode(was && typeof was === 'object' ? was : {}));
      }
      doc.setIn(path, doc.createNode(value));
    }
    const out = doc.toString({ lineWidth: 0 });
    return out === 'null\n' || out === '{}\n' ? '' : out;
  } catch { /* an alias has lost what it stood for: all is written anew, without comments */ }
  const copy = structuredClone(spec);
  let o: any = copy;
  for (const k of path.slice(0, -1)) {
    if (!o[k] || typeof o[k] !== 'object') {
      if (blank(value)) return text;
      o[k] = {};
    }
    o = o[k];
  }
  const last = path[path.length - 1];
  if (blank(value)) delete o[last]; else o[last] = value;
  for (let p = path.slice(0, -1); p.length && blank(at(copy, p)); p = p.slice(0, -1)) delete at(copy, p.slice(0, -1))[p[p.length - 1]];
  return write(copy, format);
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
/** What I changed, on top of what others changed. */
function merge(base: Spec, mine: Spec, theirs: Spec) {
  const out: Spec = {}, both: string[] = [];
  for (const k of new Set([...Object.keys(theirs), ...Object.keys(mine), ...Object.keys(base)])) {
    const v = same(mine[k], base[k]) ? theirs[k] : mine[k];
    if (!same(mine[k], base[k]) && !same(theirs[k], base[k]) && !same(mine[k], theirs[k])) both.push(k);
    if (v !== undefined) out[k] = v;
  }
  return { out, both };
}

/** What the server says of a text, before anything is saved. */
interface Looked { json: string; preview?: Preview; warnings: Sentence[]; errors: FieldProblem[]; problem?: Problem }
async function look(spec: Spec, json: string, signal?: AbortSignal): Promise<Looked> {
  const out: Looked = { json, warnings: [], errors: [] };
  const failed = (err: unknown) => { if (err instanceof Problem) out.problem = err; else throw err; };
  const warn = (more: Sentence[] = []) => { out.warnings.push(...more.filter((w) => !out.warnings.some((o) => o.message === w.message))); };
  const wrong = (more: Looked['errors']) => { out.errors.push(...more.filter((e) => !out.errors.some((o) => o.field === e.field))); };
  const looks: Promise<void>[] = [];
  if (kindsOfWhen.some((k) => spec[k] !== undefined)) looks.push(call<Preview>('/api/v1/preview', { method: 'POST', body: { ...whenOf(spec), n: 6 }, signal }).then(
    (p) => { out.preview = p.data; warn(p.data.warnings); },
    (err) => { if (err instanceof Problem && err.status === 422) wrong(err.errors); else failed(err); }));
  looks.push(call<Applied>('/api/v1/apply', { method: 'POST', body: { dry_run: true, jobs: [spec] }, signal }).then(
    (a) => a.data.jobs.forEach((j) => warn(j.warnings)),
    (err) => {
      if (!(err instanceof Problem) || (err.status !== 422 && err.status !== 400)) return failed(err);
      wrong((err.errors.length ? err.errors : [{ field: '', code: '', message: err.detail }]).map((e) => ({ ...e, field: e.field.replace(/^jobs\[0\]\.?/, '') })));
    }));
  await Promise.all(looks);
  return out;
}

const examples: { text: Text; spec: () => Spec }[] = [
  { text: 'A command every night', spec: () => ({ name: 'backup', schedule: '0 3 * * *', timezone: myZone, command: 'echo "backing up"; sleep 2; echo done', timeout: '30m' }) },
  { text: 'A command every 10 seconds', spec: () => ({ name: 'heartbeat', every: '10s', command: 'date; uptime', timeout: '5s' }) },
  { text: 'An HTTP request on workdays', spec: () => ({ name: 'report', schedule: '30 6 * * MON-FRI', timezone: myZone, http: { url: 'https://example.com/report?due={{due}}', method: 'POST' }, timeout: '1m', retry: { attempts: 3, backoff: '30s' } }) },
  { text: 'Once, in an hour', spec: () => ({ name: 'once', at: new Date(Math.ceil(now() / 60_000) * 60_000 + 3600_000).toISOString().replace('.000Z', 'Z'), command: 'echo now' }) },
];

interface Kept { text: string; format: Format; base?: Spec; etag?: string; version?: number }

export function Editor({ id }: { id?: string }) {
  const from = id ?? here.value.search.get('from') ?? undefined;
  const job = useGet<Job>(from ? `/api/v1/jobs/${from}` : null, { every: id ? 10_000 : 0, on: ['job'], job: id });
  const key = `draft:${id ?? (from ? `copy-${from}` : 'new')}`;
  const [start, setStart] = useState<Kept>();
  const [restored, setRestored] = useState(false);
  useEffect(() => {
    if (start || (from && !job.data)) return;
    let kept: Kept | undefined;
    try { kept = JSON.parse(sessionStorage.getItem(key) ?? 'null') ?? undefined; } catch { /* not ours */ }
    if (kept) { setStart(kept); setRestored(true); return; }
    const format = (localStorage.getItem('format') as Format) || 'yaml';
    if (job.data && id) setStart({ text: write(specOf(job.data), format), format, base: specOf(job.data), etag: job.etag, version: job.data.version });
    else if (job.data) setStart({ text: write({ ...specOf(job.data), name: `${job.data.name} 2` }, format), format });
    else setStart({ text: '', format });
  }, [job.data]);
  if (id ? job.data && !may('admin', job.data.app) : !mayAnywhere('admin')) return <Empty icon="lock" title={t('Changing jobs needs the admin role')}><Link class="button" to="/jobs">{t('Jobs')}</Link></Empty>;
  if (!start) return job.problem ? <ProblemBox problem={job.problem} again={job.reload} /> : <Loading />;
  return <Form key={restored ? 'r' : 'n'} id={id} name={job.data && id ? job.data.name : ''} start={start} latest={id ? job : undefined} restored={restored} draft={key} />;
}

function Form({ id, name, start, latest, restored, draft }: { id?: string; name: string; start: Kept; latest?: { data?: Job; etag: string; reload: () => Promise<void> }; restored: boolean; draft: string }) {
  const [text, setText] = useState(start.text), [format, setFormat] = useState<Format>(start.format);
  const [base, setBase] = useState(start.base), [etag, setEtag] = useState(start.etag), [version, setVersion] = useState(start.version);
  const [tried, setTried] = useState(false), [paused, setPaused] = useState(false);
  const [typing, setTyping] = useState<string>(); // the field with the focus, if nothing was wrong with it before
  const [looked, setLooked] = useState<Looked>({ json: '', warnings: [], errors: [] }), { preview, errors, warnings } = looked; // of the text at hand, or of one shortly before
  const [problem, setProblem] = useState<Problem>();
  const [face, setFace] = useState<'form' | 'text'>('form');
  const source = useRef<HTMLTextAreaElement>(null);
  const { spec, wrong } = useMemo(() => read(text, format), [text, format]);
  const dirty = base ? differences(base, spec).length > 0 || !!wrong : text.trim() !== '' && text !== start.text;
  const done = useRef(false);

  // What was typed outlives a reload and a sign-out.
  useEffect(() => {
    if (done.current) return;
    if (dirty || restored) sessionStorage.setItem(draft, JSON.stringify({ text, format, base, etag, version } satisfies Kept));
    else sessionStorage.removeItem(draft);
  }, [text, format, base]);
  useEffect(() => {
    if (!dirty) return;
    const stay = (e: BeforeUnloadEvent) => { if (!done.current) e.preventDefault(); };
    addEventListener('beforeunload', stay);
    const off = leaveGuard(() => done.current || confirm(t('Leave without saving? Your draft stays in this tab.')));
    return () => { removeEventListener('beforeunload', stay); off(); };
  }, [dirty]);

  // What it would be, while it is typed.
  const json = JSON.stringify(spec), written = useRef(json);
  written.current = json;
  const once = useMemo(onceKey, [json, paused]); // who presses again means the same job
  useEffect(() => {
    if (wrong) return;
    const stop = new AbortController();
    const timer = setTimeout(() => look(spec, json, stop.signal).then((l) => { if (!stop.signal.aborted) setLooked(l); }, () => undefined), 300);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [json, !!wrong]);

  const set = (path: Path, value: unknown) => setText((old) => put(old, format, path, value));
  const change = (changes: [Path, unknown][]) => setText((old) => changes.reduce((s, [p, v]) => put(s, format, p, v), old));
  /** What is wrong with a field: not while somebody types in it, and of an empty one only once saving was tried. */
  const error = (path: string) => (path === typing ? undefined : wrongAt(path));
  const wrongAt = (path: string) => errors.find((e) => (e.field === path || e.field.startsWith(path + '[') || e.field.startsWith(path + '.')) && (tried || !blank(at(spec, path.split('.')))));
  const known = new Set<string>();
  const e = (path: string) => { known.add(path); return error(path); };

  const turn = (to: Format) => {
    if (wrong) { say(t('Fix the text first: line {n}', { n: wrong.line }), true, wrong.message); return; }
    setText(blank(spec) ? '' : write(spec, to));
    setFormat(to);
    localStorage.setItem('format', to);
  };

  const save = async () => {
    const close = closing();
    try {
      const body = { ...spec, ...(!id && paused && { paused: true }) };
      const j = id ? (await call<Job>(`/api/v1/jobs/${id}`, { method: 'PUT', body, headers: etag ? { 'If-Match': etag } : {} })).data
        : await post<Job>('/api/v1/jobs', body, once);
      done.current = true;
      sessionStorage.removeItem(draft);
      close();
      say(id ? t('{job} saved', { job: j.name }) : t('{job} created', { job: j.name }));
      go(`/jobs/${j.id}`);
    } catch (err) {
      if (!(err instanceof Problem)) throw err;
      close();
      if (err.status === 412) { setProblem(undefined); await latest?.reload(); } else {
        if (err.errors.length) setLooked({ ...looked, errors: err.errors }); else setProblem(err);
      }
    }
  };
  /** Shows what would be saved, with what the server says of that, and not of a text before. */
  const review = async () => {
    setTried(true);
    if (wrong) { source.current?.focus(); return; }
    const is = looked.json === json && !looked.problem ? looked : await look(spec, json);
    if (written.current !== json) return; // somebody types on
    if (is !== looked) setLooked(is);
    if (is.errors.length) { setTimeout(() => document.querySelector<HTMLElement>('.field.wrong input, .field.wrong textarea, .field.wrong select')?.focus()); return; }
    show(() => <Review id={id} base={base} spec={spec} looked={is} save={save} />);
  };

  const stale = latest?.data && version !== undefined && latest.data.version !== version ? latest.data : undefined;
  const theirs = stale && base ? specOf(stale) : undefined;
  const takeOver = (how: 'merge' | 'theirs') => {
    if (!theirs || !base || !latest || (how === 'merge' && wrong)) return; // of a text that cannot be read nothing would be left
    setText(write(how === 'theirs' ? theirs : merge(base, spec, theirs).out, format));
    setBase(theirs);
    setEtag(latest.etag);
    setVersion(stale!.version);
  };
  const both = theirs && base && !wrong ? merge(base, spec, theirs).both : [];
  const form = <Fields spec={spec} set={set} change={change} error={e} disabled={!!wrong} fresh={!id} focus={(path) => setTyping(path !== undefined && !wrongAt(path) ? path : undefined)} />;
  const rest = errors.filter((x) => tried && ![...known].some((k) => x.field === k || x.field.startsWith(k + '[') || x.field.startsWith(k + '.')));

  return (
    <>
      <Head title={id ? <>{t('Edit')} <bdi>{name}</bdi></> : t('New job')} crumb={<><Link to="/jobs">{t('Jobs')}</Link>{id && <> / <Link to={`/jobs/${id}`}><bdi>{name}</bdi></Link></>}</>} />
      <div class="stack">
        {restored && <Notice icon="history" action={<Button work={() => { sessionStorage.removeItem(draft); done.current = true; location.reload(); }}>{t('Discard draft')}</Button>}><b>{t('Your draft was restored.')}</b><p>{t('It is not saved yet.')}</p></Notice>}
        {stale && theirs && (
          <Notice look="warn" action={<div class="row"><Button look="primary" disabled={!!wrong} work={() => takeOver('merge')}>{t('Merge my changes')}</Button><Button work={() => ask({ title: t('Discard your changes?'), button: t('Use their version'), danger: true, text: <Diff changes={differences(spec, theirs)} />, work: () => takeOver('theirs') })}>{t('Use their version')}</Button></div>}>
            <b>{t('Someone else changed this job while you were editing')}</b> <span class="faint">(<Ago at={stale.updated} />, {t('version {n}', { n: stale.version })})</span>
            <Diff changes={differences(base!, theirs)} />
            {both.length > 0 && <p>{t('Both of you changed: {fields}. Merging keeps your values there.', { fields: both.join(', ') })}</p>}
          </Notice>
        )}
        {problem && <ProblemBox problem={problem} />}
        {!id && (
          <div class="row"><span class="faint">{t('Start from an example')}</span>{examples.map((x) => <button key={x.text} class="chip" onClick={() => { setText(write(x.spec(), format)); setTried(false); }}>{t(x.text)}</button>)}</div>
        )}
        <div class="narrow-only"><Choice label={t('View')} value={face} set={setFace} options={[{ value: 'form', text: t('Form') }, { value: 'text', text: format.toUpperCase() }]} /></div>
        <div class={`editor face-${face}`}>
          <div class="stack side-form">
            {wrong && <Notice look="bad"><b>{t('Cannot parse the text: line {n}', { n: wrong.line })}</b></Notice>}
            {rest.map((x) => <Notice key={x.field} look="bad"><b><code>{x.field}</code></b> <Said text={x} /></Notice>)}
            {form}
          </div>
          <div class="stack sticky">
            <Card title={t('Next runs')}>
              <div class="in stack" aria-live="polite">
                {preview ? <><p class="words"><b>{inZone(preview.words)}</b></p>{preview.next.length === 0 ? <p class="faint">{t('No more runs are scheduled.')}</p> : <Dues list={preview.next} zone={spec.timezone} />}</> : <p class="faint">{t('Enter a schedule to see the next runs.')}</p>}
                {warnings.map((w) => <Notice key={w.message} look="warn"><p><Said text={w} /></p></Notice>)}
                {looked.problem && <Notice look="warn"><b>{t('The server could not check it')}</b><p>{problemTitle(looked.problem)}</p></Notice>}
              </div>
            </Card>
            <Card class="side-text" title={t('Source')} more={<Choice label={t('Format')} value={format} set={turn} options={[{ value: 'yaml', text: 'YAML' }, { value: 'json', text: 'JSON' }]} />}>
              <textarea ref={source} class={`source ${wrong ? 'bad' : ''}`} aria-label={t('Source')} aria-invalid={!!wrong} spellcheck={false} autocomplete="off" rows={Math.min(34, Math.max(12, text.split('\n').length + 1))} value={text}
                placeholder={'name: backup\nschedule: 0 3 * * *\ncommand: pg_dump -Fc -f /backup/shop.dump shop'} onInput={(ev) => setText(ev.currentTarget.value)} onKeyDown={(ev) => {
                  if (ev.key !== 'Tab' || ev.shiftKey || ev.altKey || ev.ctrlKey) return;
                  const el = ev.currentTarget;
                  if (el.selectionStart === 0 && text === '') return;
                  ev.preventDefault();
                  el.setRangeText('  ', el.selectionStart, el.selectionEnd, 'end');
                  setText(el.value);
                }} onKeyUp={(ev) => { if (ev.key === 'Escape') ev.currentTarget.blur(); }} />
              {wrong && <p class="in error small">{t('line {n}', { n: wrong.line })}: {wrong.message}</p>}
            </Card>
          </div>
        </div>
        <div class="savebar">
          <Button look="primary" icon="check" disabled={(id && !dirty) as boolean} work={review}>{id ? t('Review changes') : t('Review and create')}</Button>
          <Link class="button" to={id ? `/jobs/${id}` : '/jobs'}>{t('Cancel')}</Link>
          {!id && <label class="check"><input type="checkbox" checked={paused} onChange={() => setPaused(!paused)} />{t('Create as paused')}</label>}
          {tried && errors.length > 0 && <span class="badge bad"><i />{t('{n} fields are invalid', { n: errors.length })}</span>}
        </div>
      </div>
    </>
  );
}

function Review({ id, base, spec, looked: { preview, warnings, problem }, save }: { id?: string; base?: Spec; spec: Spec; looked: Looked; save: () => Promise<void> }) {
  const changes = differences(base ?? {}, spec);
  return (
    <Dialog wide title={id ? t('Save {job}?', { job: spec.name }) : t('Create {job}?', { job: spec.name ?? '' })} close={closeDialog}>
      <div class="body">
        {preview && <p><b>{inZone(preview.words)}</b></p>}
        {warnings.map((w) => <Notice key={w.message} look="warn"><p><Said text={w} /></p></Notice>)}
        {problem && <Notice look="warn"><b>{t('The server could not check it')}</b><p>{problemTitle(problem)}</p></Notice>}
        {changes.length === 0 ? <p class="faint">{t('No changes.')}</p> : <Diff changes={changes} />}
        {id && <p class="faint small">{t('Runs that have not started use the new definition. Runs in progress finish unchanged.')}</p>}
      </div>
      <footer><Button work={closeDialog}>{t('Back')}</Button><Button look="primary" icon="check" work={save} autoFocus>{id ? t('Save') : t('Create')}</Button></footer>
    </Dialog>
  );
}

// The form.

interface FieldsProps { spec: Spec; set: (path: Path, value: unknown) => void; change: (c: [Path, unknown][]) => void; error: (path: string) => Sentence | undefined; disabled: boolean; fresh: boolean; focus: (path: string | undefined) => void }

const crons: { cron: string; text: Text }[] = [
  { cron: '*/5 * * * *', text: 'every 5 minutes' }, { cron: '17 * * * *', text: 'hourly' }, { cron: '0 3 * * *', text: 'nightly' }, { cron: '30 6 * * MON-FRI', text: 'workdays' }, { cron: '0 4 * * SUN', text: 'weekly' }, { cron: '0 5 1 * *', text: 'monthly' },
];

function Fields({ spec, set, change, error, disabled, fresh, focus }: FieldsProps) {
  const typed = useRef<Record<string, string>>({}); // numbers as they were typed: `0.` is on its way to 0.5
  const str = (path: string) => { const v = at(spec, path.split('.')); return v === undefined || v === null ? '' : typeof v === 'object' ? JSON.stringify(v) : String(v); };
  const number = (path: string) => { const s = str(path), was = typed.current[path]; return s !== '' && was?.trim() && Number(was) === Number(s) ? was : s; };
  const box = (path: string, label: Text, o: { hint?: ComponentChildren; wide?: boolean; mono?: boolean; place?: string; list?: string; number?: boolean; rows?: number; write?: FieldsProps['set'] } = {}) => {
    const id = 'f-' + path.replace(/\W/g, '-'), err = error(path);
    const common = {
      id, disabled, value: o.number ? number(path) : str(path), placeholder: o.place, class: o.mono ? 'mono' : undefined, spellcheck: false, autocomplete: 'off' as const, onFocus: () => focus(path), onBlur: () => focus(undefined),
      onInput: (ev: { currentTarget: { value: string } }) => { const v = ev.currentTarget.value; typed.current[path] = v; (o.write ?? set)(path.split('.'), o.number && v.trim() !== '' && !Number.isNaN(Number(v)) ? Number(v) : v); },
    };
    return <Field key={path} id={id} label={t(label)} hint={o.hint} error={err} wide={o.wide}>{o.rows ? <textarea {...common} rows={o.rows} /> : <input {...common} list={o.list} inputMode={o.number ? 'numeric' : undefined} />}</Field>;
  };
  const pick = (path: string, label: Text, options: [string, string][], hint?: ComponentChildren) => {
    const id = 'f-' + path.replace(/\W/g, '-');
    return <Field key={path} id={id} label={t(label)} hint={hint} error={error(path)}><select id={id} disabled={disabled} value={str(path)} onChange={(ev) => set(path.split('.'), ev.currentTarget.value)}>{options.map(([v, text]) => <option key={v} value={v}>{text}</option>)}</select></Field>;
  };
  const groups = useGet<Page<Group>>('/api/v1/groups', { every: 0, read: upTo(1000) }), calendars = useGet<Page<CalendarItem>>('/api/v1/calendars', { every: 0, read: upTo(1000) });
  const kind = spec.schedules !== undefined ? 'schedules' : spec.every !== undefined ? 'every' : spec.delay !== undefined ? 'delay' : spec.after !== undefined ? 'after' : spec.manual ? 'manual' : spec.at !== undefined ? 'at' : 'schedule';
  const [wantKind, setWantKind] = useState<string>(kind);
  const shown = kindsOfWhen.some((k) => spec[k] !== undefined) ? kind : wantKind;
  const work = spec.http !== undefined ? 'http' : spec.handler !== undefined ? 'handler' : 'command';
  const [wantWork, setWantWork] = useState<string>(work);
  const does = ['command', 'http', 'handler'].some((k) => spec[k] !== undefined) ? work : wantWork;
  /** Writes a cron expression; with the first one of a new job comes the browser's time zone. */
  const setCron = (path: Path, value: unknown) => change([[path, value], ...zoneOfNew]);
  const zoneOfNew: [Path, unknown][] = fresh && spec.timezone === undefined && spec.schedule === undefined && spec.schedules === undefined && myZone !== 'UTC' ? [[['timezone'], myZone]] : [];
  const setKind = (k: string) => {
    setWantKind(k);
    const cron = k === 'schedule' || k === 'schedules', first = spec.schedule ?? spec.schedules?.[0];
    change([...kindsOfWhen.filter((x) => x !== k && spec[x] !== undefined).map((x) => [[x], undefined] as [Path, unknown]), ...(cron ? zoneOfNew : [[['timezone'], undefined] as [Path, unknown]]),
      ...(k === 'after' || k === 'delay' || k === 'manual' ? (['max_fires', 'jitter', 'calendars', ...(k !== 'delay' ? ['start', 'end'] as const : [])] as const).map((x) => [[x], undefined] as [Path, unknown]) : []),
      ...(k === 'at' ? (['start', 'end', 'max_fires'] as const).map((x) => [[x], undefined] as [Path, unknown]) : k !== 'every' && spec.every !== undefined ? [[['start'], undefined] as [Path, unknown]] : []),
      [[k], k === 'every' ? '10m' : k === 'delay' ? '5m' : k === 'after' ? { jobs: [''] } : k === 'manual' ? true : k === 'at' ? new Date(Math.ceil(now() / 60_000) * 60_000 + 3600_000).toISOString().replace('.000Z', 'Z') : k === 'schedules' ? [first ?? '0 3 * * *'] : (first ?? '0 3 * * *')]]);
  };
  const setWork = (k: string) => { setWantWork(k); change([...(['command', 'http', 'handler', 'payload'] as const).filter((x) => x !== k && spec[x] !== undefined).map((x) => [[x], undefined] as [Path, unknown]), ...(k !== 'command' && spec.output !== undefined ? [[['output'], undefined] as [Path, unknown]] : []), [[k], k === 'http' ? { url: 'https://' } : k === 'handler' ? 'app/name' : 'echo hello']]); };
  const filled = (...paths: string[]) => paths.filter((p) => {
    const v = at(spec, p.split('.'));
    return !blank(v) && !isUsual(p, v, spec);
  }).length;
  const section = (title: Text, paths: string[], children: ComponentChildren) => (
    <Section key={title} title={t(title)} set={filled(...paths)} wrong={paths.some((p) => !!error(p))}>{children}</Section>
  );
  return (
    <>
      <Card title={t('Basics')}>
        <div class="in fields">{box('name', 'Name', { place: 'nightly backup' })}{box('app', 'App', { place: 'default', hint: t('A namespace for related jobs') })}{box('description', 'Description', { wide: true })}</div>
      </Card>
      <Card title={t('Schedule')} more={<Choice label={t('Schedule')} value={shown} disabled={disabled} set={setKind} options={[{ value: 'schedule', text: 'Cron' }, { value: 'schedules', text: t('Several crons') }, { value: 'every', text: t('Interval') }, { value: 'delay', text: t('Delay') }, { value: 'after', text: t('After jobs') }, { value: 'manual', text: t('By hand') }, { value: 'at', text: t('Once') }]} />}>
        <div class="in fields">
          {shown === 'schedule' && <>
            {box('schedule', 'Cron expression', { mono: true, place: '0 3 * * *', wide: true, write: setCron, hint: t('minute hour day month weekday; with six fields, seconds come first') })}
            <div class="wide chips">{crons.map((c) => <button key={c.cron} type="button" class="chip" disabled={disabled} aria-pressed={spec.schedule === c.cron} onClick={() => setCron(['schedule'], c.cron)}>{t(c.text)}</button>)}</div>
          </>}
          {shown === 'schedules' && <List spec={spec} set={set} error={error} disabled={disabled} />}
          {shown === 'every' && box('every', 'Interval', { mono: true, place: '15m', hint: t('For example 10s, 15m, 1h30m') })}
          {shown === 'delay' && box('delay', 'Delay', { mono: true, place: '5m', hint: t('From the end of a run to the next due time') })}
          {shown === 'after' && <>
            <Field id="f-after-jobs" label={t('Jobs to follow')} hint={t('Names, or app/name, separated by commas')} error={error('after.jobs') ?? error('after.jobs[0]')}><input id="f-after-jobs" class="mono" disabled={disabled} value={(spec.after?.jobs ?? []).join(', ')} onInput={(ev) => set(['after', 'jobs'], ev.currentTarget.value.split(/,\s*/))} placeholder="extract, billing/close" /></Field>
            {pick('after.on', 'Which ends count', [['', t('successes (default)')], ['success', t('successes')], ['failure', t('failures')], ['end', t('all ends')]])}
            {pick('after.match', 'How many must have ended', [['', t('all of them (default)')], ['all', t('all of them')], ['any', t('any of them')]])}
            {box('after.within', 'Within', { mono: true, place: '24h', hint: t('How far apart the ends may lie') })}
          </>}
          {shown === 'manual' && <p class="wide faint">{t('No schedule: the job runs only when somebody runs it.')}</p>}
          {shown === 'at' && box('at', 'Date and time', { mono: true, place: '2027-01-31T09:00:00Z', hint: t('With its UTC offset, for example 2027-01-31T09:00:00Z') })}
          {(shown === 'schedule' || shown === 'schedules') && box('timezone', 'Time zone', { place: 'UTC', list: 'zones' })}
          <datalist id="zones">{zones.map((z) => <option key={z} value={z} />)}</datalist>
        </div>
      </Card>
      <Card title={t('Action')} more={<Choice label={t('Action')} value={does} disabled={disabled} set={setWork} options={[{ value: 'command', text: t('Command') }, { value: 'http', text: 'HTTP' }, { value: 'handler', text: t('Go function') }]} />}>
        <div class="in fields">
          {does === 'command' && box('command', 'Command', { rows: Math.min(16, Math.max(3, str('command').split('\n').length + 1)), wide: true, place: 'set -o pipefail; pg_dump shop | gzip > /backup/shop.part && mv /backup/shop.part /backup/shop.gz', hint: t('Runs with bash -c on one node. Pass secrets as {{secret.NAME}} in environment variables.') })}
          {does === 'http' && <>{box('http.url', 'URL', { wide: true, mono: true, place: 'https://example.com/hook?due={{due}}' })}{pick('http.method', 'Method', [['', t('default')], ...['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((m) => [m, m] as [string, string])])}{box('http.body', 'Body', { rows: 4, wide: true })}<Pairs label={t('Headers')} value={spec.http?.headers} disabled={disabled} set={(v) => set(['http', 'headers'], v)} error={error('http.headers')} /></>}
          {does === 'handler' && <>{box('handler', 'Function key', { mono: true })}{box('payload', 'Payload', { rows: 4, wide: true })}</>}
          {box('timeout', 'Timeout', { mono: true, place: t('none'), hint: t('Longer runs are stopped') })}
          {pick('overlap', 'If the previous run is still running', [['', t('skip the new run (default)')], ['skip', t('skip the new run')], ['queue', t('queue the new run')], ['replace', t('replace the old run')], ['allow', t('run both')]])}
        </div>
      </Card>
      {section('Parameters', ['params'], <ParamRows value={spec.params} disabled={disabled} set={(v) => set(['params'], v)} error={error('params')} />)}
      {section('Retries', ['retry.attempts', 'retry.backoff', 'retry.factor', 'retry.max_backoff', 'retry.jitter'], <>{box('retry.attempts', 'Max attempts', { number: true, place: '1' })}{box('retry.backoff', 'Backoff', { mono: true, place: '10s' })}{box('retry.factor', 'Backoff factor', { number: true, place: '1' })}{box('retry.max_backoff', 'Max backoff', { mono: true, place: '1h' })}{box('retry.jitter', 'Jitter', { mono: true })}</>)}
      {section('Missed & late runs', ['misfire.policy', 'misfire.max_age', 'misfire.after', 'misfire.max_count', 'start_deadline', 'on_lost'], <>
        {pick('misfire.policy', 'Missed runs', [['', t('run the latest (default)')], ['latest', t('run the latest')], ['skip', t('skip all')], ['all', t('run all')]])}{box('misfire.max_age', 'Max age', { mono: true, place: '1h' })}{box('misfire.max_count', 'Max missed runs', { number: true, place: '100' })}{box('start_deadline', 'Start deadline', { mono: true, hint: t('Later runs are not started') })}
        {pick('on_lost', 'If the node dies', [['', t('mark as lost (default)')], ['fail', t('mark as lost')], ['rerun', t('run again')]])}</>)}
      {section('Schedule limits', ['start', 'end', 'max_fires', 'keep_job', 'jitter', 'calendars', 'on_closed', 'weeks.every', 'weeks.from'], <>{box('start', 'Not before', { mono: true, place: '2027-01-01T00:00:00Z' })}{box('end', 'Not after', { mono: true })}{box('max_fires', 'Max runs', { number: true })}{box('keep_job', 'Delete the job after', { mono: true, place: t('never'), hint: t('Counted from its end; its runs stay') })}{box('jitter', 'Jitter', { mono: true, place: '5m' })}
        {(calendars.data?.items.length ?? 0) > 0 && <div class="field wide"><span class="label">{t('Calendars')}</span><div class="chips">{calendars.data!.items.map((c) => { const on = (spec.calendars ?? []).includes?.(c.name); return <button type="button" key={c.name} class="chip" aria-pressed={on} disabled={disabled} onClick={() => set(['calendars'], on ? spec.calendars.filter((x: string) => x !== c.name) : [...(spec.calendars ?? []), c.name])}>{c.name}</button>; })}</div></div>}
        {pick('on_closed', 'On closed days', [['', t('skip the run (default)')], ['skip', t('skip the run')], ['next', t('move to the next open day')], ['previous', t('move to the open day before')]])}
        {(shown === 'schedule' || shown === 'schedules') && <>{box('weeks.every', 'Every n weeks', { number: true, place: '1' })}{box('weeks.from', 'First week', { mono: true, place: '2026-01-05', hint: t('A date in the first of these weeks') })}</>}</>)}
      {section('Placement & concurrency', ['selector', 'group', 'priority', 'queue'], <>{box('selector', 'Node selector', { mono: true, place: 'zone in (a,b),!gpu', wide: true })}
        <Field id="f-group" label={t('Group')} error={error('group')}><select id="f-group" disabled={disabled} value={str('group')} onChange={(ev) => set(['group'], ev.currentTarget.value)}><option value="">{t('none')}</option>{[...new Set([...(groups.data?.items.map((g) => g.name) ?? []), ...(spec.group ? [spec.group] : [])])].map((g) => <option key={g} value={g}>{g}</option>)}</select></Field>
        {box('priority', 'Priority', { number: true, place: '0' })}{box('queue', 'Queue limit', { number: true })}</>)}
      {does === 'command' && section('Command options', ['user', 'dir', 'env', 'stdin', 'success_codes', 'skip_exit_codes', 'grace', 'limits.memory', 'limits.cpu', 'limits.pids'], <>{box('user', 'User')}{box('dir', 'Working directory', { mono: true })}{box('grace', 'Grace period', { mono: true, place: '5s' })}<Codes id="f-success_codes" label={t('Success codes')} place="0" value={spec.success_codes} disabled={disabled} set={(v) => set(['success_codes'], v)} error={error('success_codes')} /><Codes id="f-skip_exit_codes" label={t('Codes for nothing to do')} place="75" hint={t('The run ends skipped: no alert, no retry')} value={spec.skip_exit_codes} disabled={disabled} set={(v) => set(['skip_exit_codes'], v)} error={error('skip_exit_codes')} />{box('limits.memory', 'Memory limit', { mono: true, place: '512MiB' })}{box('limits.cpu', 'CPU limit', { number: true })}{box('limits.pids', 'Process limit', { number: true })}<Pairs label={t('Environment variables')} value={spec.env} disabled={disabled} set={(v) => set(['env'], v)} error={error('env')} />{box('stdin', 'Standard input', { rows: 3, wide: true })}</>)}
      {section('Retention', ['keep.age', 'keep.runs', 'keep.bytes', 'keep.failures', 'output.keep', 'output.mark_stderr'], <>
        {box('keep.age', 'Keep runs for', { mono: true, place: '720h', hint: t('Counted from the end of each run') })}{box('keep.runs', 'Keep the latest', { number: true, place: '10000', hint: t('Scheduled times per job') })}
        {box('keep.bytes', 'Max output', { mono: true, place: '1GiB', hint: t('Per job; the oldest runs are deleted first') })}{box('keep.failures', 'Keep unsuccessful runs for', { mono: true, place: '8760h', hint: t('Overrides the other limits') })}
        {does !== 'http' && box('output.keep', 'Kept output of a run', { mono: true, place: '64KiB', hint: t('Half from the beginning, half from the end; up to 16MiB') })}
        {does === 'command' && <Field id="f-output-mark_stderr" label={t('Lines from stderr')} error={error('output.mark_stderr')}><select id="f-output-mark_stderr" disabled={disabled} value={at(spec, ['output', 'mark_stderr']) === true ? 'yes' : ''} onChange={(ev) => set(['output', 'mark_stderr'], ev.currentTarget.value ? true : '')}><option value="">{t('not marked (default)')}</option><option value="yes">{t('marked')}</option></select></Field>}
        <div class="wide"><p class="faint small">{t('Empty fields follow the app rule, then the cluster rule. The result:')}</p><KeepInForce own={spec.keep} app={str('app') || 'default'} /></div></>)}
      {section('Owner and labels', ['owner', 'labels'], <>{box('owner', 'Owner', { place: 'team-data@example.com' })}<Pairs label={t('Labels')} value={spec.labels} disabled={disabled} set={(v) => set(['labels'], v)} error={error('labels')} /></>)}
    </>
  );
}

/** A part of the form that is folded up until it is wanted, or something in it is wrong; what is open stays open. */
function Section({ title, set, wrong, children }: { title: string; set: number; wrong: boolean; children: ComponentChildren }) {
  const [open, setOpen] = useState(wrong);
  useEffect(() => { if (wrong) setOpen(true); }, [wrong]);
  return (
    <details class="group card" open={open} onToggle={(ev) => setOpen(ev.currentTarget.open)}>
      <summary><Icon name="right" />{title}{set > 0 && <span class="tag">{t('{n} set', { n: set })}</span>}</summary>
      <div class="in fields">{children}</div>
    </details>
  );
}

const codesOf = (text: string) => text.split(/[\s,]+/).filter(Boolean).map((x) => (/^\d+$/.test(x) ? Number(x) : x));

/** A list of exit codes as one line of text. What is no number goes to the server as it is, which says so. */
function Codes({ id, label, hint, place, value, disabled, error, set }: { id: string; label: string; hint?: string; place: string; value: unknown; disabled: boolean; error?: Sentence; set: (v: unknown) => void }) {
  const list = Array.isArray(value) ? value : blank(value) ? [] : [value];
  const [text, setText] = useState(list.join(', '));
  const shown = JSON.stringify(codesOf(text)) === JSON.stringify(list) ? text : list.join(', ');
  return <Field id={id} label={label} hint={hint} error={error}><input id={id} class="mono" disabled={disabled} value={shown} placeholder={place} spellcheck={false} autocomplete="off" onInput={(ev) => { setText(ev.currentTarget.value); set(codesOf(ev.currentTarget.value)); }} /></Field>;
}

const zones: string[] = (() => { try { return ['UTC', ...(Intl as any).supportedValuesOf('timeZone')]; } catch { return ['UTC', myZone]; } })();

function List({ spec, set, error, disabled }: Pick<FieldsProps, 'spec' | 'set' | 'error' | 'disabled'>) {
  const list: string[] = Array.isArray(spec.schedules) ? spec.schedules : [];
  return (
    <div class={`field wide ${error('schedules') ? 'wrong' : ''}`}>
      <span class="label">{t('Cron expressions')}</span>
      {list.map((c, i) => (
        <div key={i} class="row" style={{ flexWrap: 'nowrap' }}>
          <input class="mono" aria-label={t('Cron expression')} disabled={disabled} value={c} onInput={(ev) => set(['schedules', i], ev.currentTarget.value || ' ')} />
          <Button look="quiet" icon="cross" aria-label={t('Remove')} disabled={disabled || list.length === 1} work={() => set(['schedules'], list.filter((_, k) => k !== i))} />
        </div>
      ))}
      <div><Button icon="plus" disabled={disabled} work={() => set(['schedules'], [...list, '0 12 * * SAT'])}>{t('Add another')}</Button></div>
      {error('schedules') && <p class="error"><Said text={error('schedules')!} /></p>}
    </div>
  );
}

/** Parameters, as rows; what a row does not show stays. */
function ParamRows({ value, set, disabled, error }: { value: Record<string, Param> | undefined; set: (v: Record<string, Param>) => void; disabled: boolean; error?: Sentence }) {
  const given = Object.entries(value && typeof value === 'object' ? value : {}).map(([k, p]) => [k, p ?? {}] as [string, Param]);
  const [rows, setRows] = useState(given);
  const told = rows.filter(([k]) => k !== '');
  useEffect(() => { if (!same(Object.fromEntries(told), Object.fromEntries(given))) setRows(given); }, [JSON.stringify(given)]);
  const keep = (next: [string, Param][]) => { setRows(next); set(Object.fromEntries(next.filter(([k]) => k !== ''))); };
  const edit = (i: number, p: Param, name = rows[i][0]) => keep(rows.map((r, x) => (x === i ? [name, JSON.parse(JSON.stringify(p))] : r)));
  return (
    <div class={`field wide ${error ? 'wrong' : ''}`}>
      {rows.map(([name, p], i) => (
        <div key={i} class="row" style={{ flexWrap: 'wrap' }}>
          <input aria-label={t('Name')} class="mono" disabled={disabled} value={name} placeholder="day" onInput={(ev) => edit(i, p, ev.currentTarget.value)} />
          <select aria-label={t('Type')} disabled={disabled} value={p.secret !== undefined ? 'secret' : p.type ?? 'string'} onChange={(ev) => {
            const type = ev.currentTarget.value, { type: _, secret: __, ...rest } = p;
            edit(i, type === 'secret' ? { secret: '', description: p.description } : { ...rest, type: type as Param['type'] });
          }}>{['string', 'integer', 'number', 'boolean', 'date', 'secret'].map((x) => <option key={x} value={x}>{x}</option>)}</select>
          {p.secret !== undefined
            ? <input aria-label={t('Secret')} class="mono" disabled={disabled} value={p.secret} onInput={(ev) => edit(i, { ...p, secret: ev.currentTarget.value })} />
            : <input aria-label={t('Default')} class="mono" disabled={disabled} placeholder={t('no default')} value={p.default === undefined ? '' : String(p.default)}
                onInput={(ev) => edit(i, { ...p, default: ev.currentTarget.value === '' ? undefined : valueOf(p.type, ev.currentTarget.value) })} />}
          {p.secret === undefined && <label class="check"><input type="checkbox" disabled={disabled} checked={!!p.required} onChange={() => edit(i, { ...p, required: p.required ? undefined : true })} />{t('required')}</label>}
          <Button look="quiet" icon="cross" aria-label={t('Remove')} disabled={disabled} work={() => keep(rows.filter((_, x) => x !== i))} />
        </div>
      ))}
      <div><Button icon="plus" disabled={disabled} work={() => setRows([...rows, ['', { type: 'string' }]])}>{t('Add another')}</Button></div>
      {error && <p class="error"><Said text={error} /></p>}
    </div>
  );
}

/** Names and values. */
function Pairs({ label, value, set, disabled, error }: { label: string; value: Record<string, unknown> | undefined; set: (v: Record<string, string> | undefined) => void; disabled: boolean; error?: Sentence }) {
  const given = Object.entries(value && typeof value === 'object' ? value : {}).map(([k, v]) => [k, String(v)] as [string, string]);
  const [rows, setRows] = useState(given);
  const told = rows.filter(([k]) => k !== '');
  useEffect(() => { if (!same(Object.fromEntries(told), Object.fromEntries(given))) setRows(given); }, [JSON.stringify(given)]);
  const keep = (next: [string, string][]) => { setRows(next); set(Object.fromEntries(next.filter(([k]) => k !== ''))); };
  return (
    <div class={`field wide ${error ? 'wrong' : ''}`}>
      <span class="label">{label}</span>
      <div class="pairs">
        {rows.map(([k, v], i) => (
          <div key={i}>
            <input aria-label={t('Name')} class="mono" disabled={disabled} value={k} onInput={(ev) => keep(rows.map((r, x) => (x === i ? [ev.currentTarget.value, r[1]] : r)))} />
            <input aria-label={t('Value')} class="mono" disabled={disabled} value={v} onInput={(ev) => keep(rows.map((r, x) => (x === i ? [r[0], ev.currentTarget.value] : r)))} />
            <Button look="quiet" icon="cross" aria-label={t('Remove')} disabled={disabled} work={() => keep(rows.filter((_, x) => x !== i))} />
          </div>
        ))}
      </div>
      <div><Button icon="plus" disabled={disabled} work={() => setRows([...rows, ['', '']])}>{t('Add another')}</Button></div>
      {error && <p class="error"><Said text={error} /></p>}
    </div>
  );
}
