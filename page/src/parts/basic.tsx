import { computed, signal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { now, Problem } from '../api';
import { lang, problemSaid, reasonSaid, sentence, t, waitSaid, type Text } from '../i18n';
import { second } from '../live';
import { Link, useBack } from '../router';
import { brief, coarse, durationSaid, inZone, ms, offsetOf, range, stamp, weekday, zoneShown } from '../time';
import type { Health, Job, LastRun, Outcome, Run, Message as Sentence, Status } from '../types';
import { Icon, type IconName } from './icon';

// What screens are made of.

type ButtonProps = Omit<JSX.IntrinsicElements['button'], 'icon'> & { icon?: IconName; look?: 'primary' | 'danger' | 'quiet'; work?: () => unknown };

/** A button. While what it does goes on, it is busy and cannot be pressed again; it keeps the focus. */
export function Button({ icon, look, work, children, disabled, class: more, ...rest }: ButtonProps) {
  const [busy, setBusy] = useState(false);
  const there = useRef(true);
  useEffect(() => () => { there.current = false; }, []);
  const click = async () => {
    if (busy || !work) return;
    const r = work();
    if (!(r instanceof Promise)) return;
    setBusy(true);
    try { await r; } catch (err) { complain(err); } finally { if (there.current) setBusy(false); }
  };
  return (
    <button type="button" {...rest} class={`button ${look ?? ''} ${more ?? ''} ${children ? '' : 'bare'}`} disabled={disabled} aria-disabled={busy || undefined} aria-busy={busy} {...(work ? { onClick: click } : {})}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

// Toasts: short words on what was done.
interface Toast { id: number; text: string; bad: boolean; detail?: string }
const toasts = signal<Toast[]>([]);
let toastID = 0;
export function say(text: string, bad = false, detail?: string) {
  const id = ++toastID;
  toasts.value = [...toasts.value.slice(-2), { id, text, bad, detail }];
  setTimeout(() => { toasts.value = toasts.value.filter((x) => x.id !== id); }, bad ? 12_000 : 4_000);
}
export const complain = (err: unknown) => {
  if (err instanceof Problem) say(problemTitle(err), true, problemDetail(err) + (err.requestID ? ` (${err.requestID})` : ''));
  else say(String(err), true);
};

/** Dialogs that are open. They lie above all else and take all presses, so toasts stand in the upmost. */
const layers = signal<symbol[]>([]);
export const Toasts = ({ layer }: { layer?: symbol }) => layers.value[layers.value.length - 1] !== layer ? null : (
  <div class="toasts" role="status" aria-live="polite">
    {toasts.value.map((x) => (
      <div key={x.id} class={`toast ${x.bad ? 'bad' : ''}`}>
        <Icon name={x.bad ? 'warning' : 'check'} />
        <div><b>{x.text}</b>{x.detail && <p>{x.detail}</p>}</div>
        <button class="button quiet bare" aria-label={t('Close')} onClick={() => { toasts.value = toasts.value.filter((y) => y.id !== x.id); }}><Icon name="cross" /></button>
      </div>
    ))}
  </div>
);

const titles: Record<string, Text> = {
  'urn:go-crontab:problem:unauthenticated': 'You are not signed in',
  'urn:go-crontab:problem:forbidden': 'You do not have permission',
  'urn:go-crontab:problem:not-found': 'Not found',
  'urn:go-crontab:problem:invalid': 'Some values are invalid',
  'urn:go-crontab:problem:stale': 'Someone else changed it in the meantime',
};
export const problemTitle = (p: Problem) => (p.status === 0 ? t('No response') : problemSaid(p.type)?.[0] ?? (titles[p.type] ? t(titles[p.type]) : p.title));

/** What a problem says: in Chinese by its type and by its places, and then as the server put it. */
export const problemDetail = (p: Problem) => {
  if (p.status === 0) return t('{host} is not responding.', { host: location.host });
  const advice = problemSaid(p.type)?.[1];
  return advice === undefined ? p.detail : [advice, ...p.errors.map((e) => `${e.field}：${sentence(e)}`)].filter(Boolean).join('\n');
};

/** A text of the server in the language that is shown; where that is another one, what the server wrote stands below. */
export function Said<T extends string | Sentence>({ text, by, zone }: { text: T; by?: (text: T) => string; zone?: string }) {
  const was = typeof text === 'string' ? text : text.message, is = by ? by(text) : typeof text === 'string' ? text : sentence(text);
  return <><bdi>{inZone(is, zone)}</bdi>{is !== was && <span class="original" lang="en"><bdi>{inZone(was, zone)}</bdi></span>}</>;
}

/** Why a run ended as it did. */
export const Reason = ({ run, zone }: { run: Run; zone?: string }) => <Said text={run.reason ?? ''} zone={zone} by={(text) => reasonSaid(text, run.reason_code)} />;

/** What went wrong, in the words of the server, and a way to try again. */
export function ProblemBox({ problem, again }: { problem: Problem; again?: () => unknown }) {
  return (
    <div class="notice bad" role="alert">
      <Icon name="warning" />
      <div>
        <b>{problemTitle(problem)}</b>
        {problem.detail && <p class="lines">{problemDetail(problem)}</p>}{problem.status > 1 && lang.value !== 'en' && problem.detail && <p class="faint small" lang="en">{problem.detail}</p>}
        {problem.requestID && <p class="faint mono small">{problem.requestID}</p>}
      </div>
      {again && <Button work={again}>{t('Try again')}</Button>}
    </div>
  );
}

export const Notice = ({ look, icon, children, action }: { look?: 'bad' | 'warn' | 'good'; icon?: IconName; children: ComponentChildren; action?: ComponentChildren }) => (
  <div class={`notice ${look ?? ''}`}><Icon name={icon ?? 'warning'} /><div>{children}</div>{action}</div>
);

export const Empty = ({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) => (
  <div class="empty"><Icon name={icon} /><h2>{title}</h2>{children}</div>
);

export const Loading = ({ rows = 5 }: { rows?: number }) => (
  <div class="loading" role="status"><span class="unseen">{t('Loading')}</span>{Array.from({ length: rows }, (_, i) => <i key={i} />)}</div>
);

export function Head({ title, sub, children, crumb }: { title: ComponentChildren; sub?: ComponentChildren; children?: ComponentChildren; crumb?: ComponentChildren }) {
  const h1 = useRef<HTMLHeadingElement>(null);
  useEffect(() => { document.title = `${h1.current?.textContent} · go-crontab`; });
  return (
    <header class="head">
      <div class="title">
        {crumb && <div class="crumb">{crumb}</div>}
        <h1 ref={h1}>{title}</h1>
        {sub && <div class="sub">{sub}</div>}
      </div>
      {children && <div class="actions">{children}</div>}
    </header>
  );
}

export const Card = ({ id, title, more, children, class: extra }: { id?: string; title?: ComponentChildren; more?: ComponentChildren; children: ComponentChildren; class?: string }) => (
  <section id={id} class={`card ${extra ?? ''}`}>
    {(title || more) && <header><h2>{title}</h2>{more && <div class="more">{more}</div>}</header>}
    {children}
  </section>
);

/** Moves a strip that is wider than the screen so far that its current entry can be seen. */
function showCurrent(strip: HTMLElement | null) {
  const current = strip?.querySelector('[aria-current="page"]');
  if (!strip || !current) return;
  const over = current.getBoundingClientRect().right - strip.getBoundingClientRect().right;
  if (over > 0) strip.scrollLeft += over;
}

export function Tabs({ items, current }: { items: { id: string; to: string; text: string; count?: number }[]; current: string }) {
  return (
    <nav class="tabs" aria-label={t('Tabs')} ref={showCurrent}>
      {items.map((x) => (
        <Link key={x.id} to={x.to} aria-current={x.id === current ? 'page' : undefined}>{x.text}{x.count ? <span class="count">{x.count}</span> : null}</Link>
      ))}
    </nav>
  );
}

// Times.

const both = (at: string, zone?: string) => {
  const mine = zoneShown(), here = `${weekday(at, mine)} ${stamp(at, mine)} ${mine} (${offsetOf(ms(at), mine)})`;
  return zone && zone !== mine ? `${weekday(at, zone)} ${stamp(at, zone)} ${zone} (${offsetOf(ms(at), zone)})\n${here}` : here;
};

// The title of an instant is worked out when somebody points at it: lists have hundreds of them.
document.addEventListener('pointerover', (e) => {
  const el = (e.target as Element).closest?.('time');
  if (el?.dateTime) el.title = both(el.dateTime, el.dataset.zone);
}, { passive: true });

/** An instant; its title has it in the job's zone and in the browser's. */
export const When = ({ at, zone, long, in: shown }: { at: string; zone?: string; long?: boolean; in?: string }) => (
  <time dateTime={at} data-zone={zone}>{long ? stamp(at, shown) : brief(at, shown)}</time>
);

/** A range of instants. */
export function Range({ from, to, zone }: { from: string; to: string; zone?: string }) {
  const [a, b] = range(from, to, zone);
  return <><time dateTime={from} data-zone={zone}>{a}</time> – <time dateTime={to} data-zone={zone}>{b}</time></>;
}

/** A text that is worked out each second, and is put onto the page, alone, where it has become another one. */
export const useCounted = (text: () => string, of: unknown[]) => useMemo(() => computed(() => { void second.value; return text(); }), of);

export function Ago({ at }: { at: string }) {
  const text = useCounted(() => { const d = now() - ms(at); return d < 1000 ? t('just now') : t('{span} ago', { span: short(d) }); }, [at]);
  return <time dateTime={at}>{text}</time>;
}

/** How long until an instant. */
export function Until({ at, zone }: { at: string; zone?: string }) {
  const text = useCounted(() => { const d = ms(at) - now(); return d > 0 ? t('in {span}', { span: short(d) }) : d > -5000 ? t('now') : t('scheduled {span} ago', { span: short(-d) }); }, [at]);
  return <time dateTime={at} data-zone={zone}>{text}</time>;
}

function short(d: number) { // one unit is enough beyond minutes
  const s = coarse(d);
  return d > 3 * 3600_000 && d < 86400_000 ? s.replace(/ \d+ (m|分)$/, '') : d > 10 * 60_000 ? s.replace(/ \d+ (s|秒)$/, '') : s;
}

// Outcomes and states.

export const outcomeText: Record<Outcome | 'running', Text> = {
  succeeded: 'succeeded', failed: 'failed', timed_out: 'timed out', killed: 'killed', lost: 'lost', skipped: 'skipped', missed: 'missed', superseded: 'superseded', running: 'running',
};
export const outcomes: Outcome[] = ['succeeded', 'failed', 'timed_out', 'killed', 'lost', 'skipped', 'missed', 'superseded'];
/** What `outcome=unsuccessful` stands for. */
export const unsuccessful: Outcome[] = ['failed', 'timed_out', 'lost', 'killed'];
export type Tone = 'good' | 'bad' | 'warn' | 'mute' | 'busy';
export const toneOf = (o: Outcome | 'running' | undefined): Tone =>
  o === 'succeeded' ? 'good' : o === 'failed' || o === 'timed_out' || o === 'lost' ? 'bad' : o === 'killed' || o === 'missed' ? 'warn' : o === 'running' ? 'busy' : 'mute';
/** What a list needs of a run: rows of jobs have short ones. */
type Shown = Pick<LastRun, 'state' | 'outcome' | 'count'>;
export const outcomeOf = (r: Shown): Outcome | 'running' => (r.state === 'running' ? 'running' : r.outcome ?? 'lost');

export const Badge = ({ tone, children, title }: { tone: Tone; children: ComponentChildren; title?: string }) => (
  <span class={`badge ${tone}`} title={title}><i aria-hidden="true" />{children}</span>
);
export const OutcomeBadge = ({ run }: { run: Shown }) => {
  const o = outcomeOf(run);
  return <Badge tone={toneOf(o)}>{t(outcomeText[o])}{run.count && run.count > 1 ? ` ×${run.count.toLocaleString()}` : ''}</Badge>;
};

const statusText: Record<Status, Text> = { active: 'active', paused: 'paused', finished: 'finished', error: 'broken' };
type HealthCode = Health['code'];
const healthText: Record<HealthCode, Text> = { broken: 'Broken', failing: 'Failing', late: 'Late', waiting: 'Waiting', paused: 'Paused', unstable: 'Unstable', running: 'Running', ok: 'OK', never: 'Has not run' };
const healthTone: Record<HealthCode, Tone> = { broken: 'bad', failing: 'bad', late: 'warn', waiting: 'warn', paused: 'mute', unstable: 'warn', running: 'busy', ok: 'good', never: 'mute' };

/** Who paused a job, and with what it is paused. */
export function pausedBy(h: Health): string {
  if (h.code !== 'paused') return '';
  const by = h.by ? t('by {who}', { who: h.by }) : '';
  return h.scope === 'app' ? `${t('with its app')} ${by}` : h.scope === 'cluster' ? `${t('with the cluster')} ${by}` : by;
}

export const HealthBadge = ({ health: h, title }: { health: Health; title?: string }) => (
  <Badge tone={healthTone[h.code]} title={title ?? (h.code === 'unstable' ? t('{n} of the last {all} runs failed', { n: h.failed ?? 0, all: h.of ?? 0 }) : pausedBy(h))}>
    {h.code === 'failing' && h.failures ? t('Failing ({n}×)', { n: `${h.at_least ? '≥' : ''}${h.failures.toLocaleString()}` }) : t(healthText[h.code])}{h.code === 'unstable' && ` (${h.failed}/${h.of})`}
  </Badge>
);

/** The health of a job in a word. The answer to a change does not have it. */
export function StatusBadge({ job: j }: { job: Job }) {
  const h = j.health;
  if (!h || (j.status === 'finished' && ['ok', 'unstable', 'never'].includes(h.code))) return <Badge tone={j.status === 'error' ? 'bad' : 'mute'} title={j.error}>{t(statusText[j.status])}</Badge>;
  return <HealthBadge health={h} title={j.error ?? (h.code === 'waiting' && j.waiting?.length ? waitSaid(j.waiting[0]) : undefined)} />;
}

const heights: Record<Tone, number> = { good: 11, bad: 18, warn: 15, mute: 5, busy: 11 };

/** The last outcomes as bars, the latest at the right. What went wrong is tall, so that it does not need its colour. What was tried again is not red. */
export function Bars({ runs, slots = 12 }: { runs: LastRun[] | undefined; slots?: number }) {
  if (!runs) return <span class="bars" aria-hidden="true" />;
  const again = (r: LastRun) => !r.final || runs.some((x) => x.due === r.due && (x.started ?? '') > (r.started ?? ''));
  const last = runs.slice(0, slots).reverse(), counts = new Map<string, number>(), paths: Partial<Record<Tone | 'none', string>> = {};
  const bar = (i: number, tone: Tone | 'none', h: number) => { paths[tone] = (paths[tone] ?? '') + `M${i * 7} 18v${-h}h5v${h}z`; };
  for (let i = 0; i < slots - last.length; i++) bar(i, 'none', 2);
  last.forEach((r, i) => {
    const o = outcomeOf(r), text = t(outcomeText[o]), tone = toneOf(o) === 'bad' && again(r) ? 'warn' : toneOf(o);
    counts.set(text, (counts.get(text) ?? 0) + 1);
    bar(slots - last.length + i, tone, heights[tone]);
  });
  const label = last.length ? [...counts].map(([o, n]) => `${n} ${o}`).join(', ') : t('never ran');
  return (
    <svg class="bars" viewBox="0 0 82 18" role="img" aria-label={label}>
      <title>{label}</title>
      {Object.entries(paths).map(([tone, d]) => <path key={tone} class={tone} d={d} />)}
    </svg>
  );
}

export const what = (j: Pick<Job, 'command' | 'http' | 'handler'>) => j.command ?? (j.http ? `${j.http.method ?? 'GET'} ${j.http.url}` : j.handler ?? '');
export function when(j: Pick<Job, 'schedule' | 'schedules' | 'every' | 'at' | 'timezone' | 'manual'>): string {
  if (j.every) return t('every {span}', { span: durationSaid(j.every) });
  if (j.manual) return t('by hand');
  if (j.at) return t('once, {at}', { at: brief(j.at) });
  const cron = j.schedule ?? j.schedules?.join(' · ') ?? '';
  return cron;
}

// Fields.

export function Field({ label, hint, error, children, wide, id }: { label: string; hint?: ComponentChildren; error?: string | Sentence; children: ComponentChildren; wide?: boolean; id: string }) {
  const ref = useRef<HTMLDivElement>(null), said = error ? `${id}-error` : hint ? `${id}-hint` : '';
  useEffect(() => { // who does not see the field hears the same of it
    const input = ref.current!.querySelector(`[id="${id}"]`);
    input?.setAttribute('aria-invalid', String(!!error));
    if (said) input?.setAttribute('aria-describedby', said); else input?.removeAttribute('aria-describedby');
  });
  return (
    <div ref={ref} class={`field ${wide ? 'wide' : ''} ${error ? 'wrong' : ''}`}>
      <label for={id}>{label}</label>
      {children}
      {error ? <p class="error" id={id + '-error'}><Said text={error} /></p> : hint ? <p class="hint" id={id + '-hint'}>{hint}</p> : null}
    </div>
  );
}

/** A choice among few, as buttons in a row. */
export function Choice<T extends string>({ value, options, set, label, disabled }: { value: T; options: { value: T; text: string }[]; set: (v: T) => void; label: string; disabled?: boolean }) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map((o) => <button key={o.value} type="button" aria-pressed={o.value === value} disabled={disabled} onClick={() => set(o.value)}>{o.text}</button>)}
    </div>
  );
}

export async function copy(text: string) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // it is not there by plain HTTP
    const area = document.createElement('textarea'), back = document.activeElement as HTMLElement | null;
    area.value = text;
    area.className = 'unseen';
    (document.querySelector('dialog[open]') ?? document.body).append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    back?.focus();
    if (!done) return say(t('Could not copy'), true, t('The browser blocks copying here. Select the text and copy it by hand.'));
  }
  say(t('Copied'));
}

// Dialogs. The browser's own dialog keeps the focus inside, and gives it back.

/** A dialog. Without a way to close it, it stays until it is taken away; one that is precious stays when somebody presses beside it. */
export function Dialog({ title, close, children, wide, precious }: { title: string; close?: () => void; children: ComponentChildren; wide?: boolean; precious?: boolean }) {
  const ref = useRef<HTMLDialogElement>(null), there = useRef(true), layer = useMemo(() => Symbol(title), []);
  useEffect(() => {
    const d = ref.current!;
    const back = document.activeElement as HTMLElement | null;
    d.showModal();
    layers.value = [...layers.value, layer];
    return () => { there.current = false; layers.value = layers.value.filter((l) => l !== layer); d.close(); back?.focus?.(); };
  }, []);
  useBack(precious ? undefined : close);
  // Esc pressed again closes it whatever we say to the first one.
  const closed = () => { if (!there.current) return; if (close) close(); else ref.current?.showModal(); };
  return (
    <dialog ref={ref} class={`dialog ${wide ? 'wide' : ''}`} aria-label={title} onCancel={(e) => { e.preventDefault(); close?.(); }} onClose={closed}
      onMouseDown={(e) => { if (e.target === ref.current && !precious) close?.(); }}>
      <Toasts layer={layer} />
      <div class="box">
        <header><h2>{title}</h2>{close && <button class="button quiet bare" aria-label={t('Close')} onClick={close}><Icon name="cross" /></button>}</header>
        {children}
      </div>
    </dialog>
  );
}

/** What is shown over the page, at most one at a time. */
export const dialog = signal<(() => JSX.Element) | null>(null);
export const closeDialog = () => { dialog.value = null; };
/** Returns what closes the dialog that is open now, and no later one: before an answer comes, somebody may have opened another. */
export function closing() {
  const mine = dialog.peek();
  return () => { if (dialog.peek() === mine) closeDialog(); };
}
export const show = (f: () => JSX.Element) => { dialog.value = f; };

interface Question { title: string; text?: ComponentChildren; button: string; danger?: boolean; work: () => unknown; instead?: (problem: Problem) => ComponentChildren }
/** Asks before something is done. An error stays in the dialog, with what could be done instead where there is such a thing. */
export function ask(o: Question) {
  show(() => <Asking {...o} />);
}
function Asking({ title, text, button, danger, work, instead }: Question) {
  const [problem, setProblem] = useState<Problem>();
  const run = async () => {
    const close = closing();
    try { await work(); close(); } catch (err) { if (err instanceof Problem) setProblem(err); else throw err; }
  };
  return (
    <Dialog title={title} close={closeDialog}>
      <div class="body">{text}{problem && (instead?.(problem) ?? <ProblemBox problem={problem} />)}</div>
      <footer><Button work={closeDialog}>{t('Cancel')}</Button><Button look={danger ? 'danger' : 'primary'} work={run} autoFocus>{button}</Button></footer>
    </Dialog>
  );
}
