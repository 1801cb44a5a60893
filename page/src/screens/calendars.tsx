import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { call, may, now, onceKey, Problem, query } from '../api';
import { t } from '../i18n';
import { upTo, useGet } from '../live';
import { write } from '../parts/actions';
import { Ago, ask, Button, Card, closeDialog, closing, Dialog, Empty, Field, Loading, Notice, ProblemBox, say, show } from '../parts/basic';
import { opensYearly, withDay, weekdayNames } from '../parts/calendardays';
import { go, here, Link, setQuery } from '../router';
import { day, weekday } from '../time';
import type { Calendar, CalendarItem, DayState, Import, Page } from '../types';

// Calendars: the list, the days of one of them to click on, and files to import.

const pathOf = (name: string) => `/api/v1/calendars/${encodeURIComponent(name)}`;
const screenOf = (name: string) => `/settings/calendars/${encodeURIComponent(name)}`;

/** The name of the weekday with a number: 0 is Monday. */
const nameOfWeekday = (i: number) => weekday(Date.UTC(2024, 0, 1 + i), 'UTC');

export function Calendars({ item }: { item?: string }) {
  return item ? <CalendarScreen key={item} name={item} /> : <CalendarList />;
}

function CalendarList() {
  const list = useGet<Page<CalendarItem>>('/api/v1/calendars', { every: 15_000, on: ['change'], read: upTo(1000) });
  const items = list.data?.items ?? [];
  const create = may('admin') && (
    <Button icon="plus" work={() => show(() => <CalendarDialog done={(name) => go(screenOf(name))} />)}>{t('New calendar')}</Button>
  );

  return (
    <Card title={t('Calendars')} more={create}>
      {list.problem && <ProblemBox problem={list.problem} again={list.reload} />}
      {list.loading ? <Loading /> : items.length === 0 ? !list.problem && (
        <Empty icon="upcoming" title={t('No calendars yet')}>
          <p>{t('A calendar keeps jobs from running on certain days or hours, such as holidays.')}</p>
        </Empty>
      ) : (
        <div class="scroll"><table>
          <thead><tr>
            <th>{t('Name')}</th><th class="thin-hide">{t('Time zone')}</th><th class="num">{t('Excluded')}</th>
            <th class="num">{t('Included')}</th><th class="num">{t('Jobs')}</th><th class="thin-hide">{t('Updated')}</th>
          </tr></thead>
          <tbody>{items.map((c) => (
            <tr key={c.name}>
              <td><Link to={screenOf(c.name)}><bdi>{c.name}</bdi></Link></td>
              <td class="thin-hide">{c.timezone ?? <span class="faint">{t("the job's own")}</span>}</td>
              <td class="num">{c.excludes}</td><td class="num">{c.includes}</td>
              <td class="num"><Link to={`/jobs?calendar=${encodeURIComponent(c.name)}`}>{c.jobs}</Link></td>
              <td class="thin-hide"><Ago at={c.updated} /></td>
            </tr>
          ))}</tbody>
        </table></div>
      )}
    </Card>
  );
}

const monthsShown = 6;
const monthAt = (month: string, more: number) => new Date(Date.UTC(+month.slice(0, 4), +month.slice(5, 7) - 1 + more, 1)).toISOString().slice(0, 7);

/** The days of a calendar in six months. Clicks are collected, and saved together. */
function CalendarScreen({ name }: { name: string }) {
  const today = day(now(), 'UTC');
  const asked = here.value.search.get('month') ?? '', first = /^\d{4}-(0[1-9]|1[0-2])$/.test(asked) ? asked : today.slice(0, 7);
  const last = new Date(Date.parse(`${monthAt(first, monthsShown)}-01`) - 86400_000).toISOString().slice(0, 10);
  const calendar = useGet<Calendar>(pathOf(name), { every: 15_000, on: ['change'] });
  const days = useGet<Page<DayState>>(`${pathOf(name)}/days${query({ from: `${first}-01`, to: last })}`, { every: 15_000, on: ['change'] });
  const [wished, setWished] = useState<Map<string, boolean>>(new Map()); // by date: whether it is to be closed
  const c = calendar.data, edit = may('admin') && !!c && !c.error;
  const reload = async () => { setWished(new Map()); await Promise.all([calendar.reload(), days.reload()]); };

  const click = (d: DayState) => {
    if (d.state === 'open' && opensYearly(c!, d.date)) return say(t('A yearly entry opens {date}. Change it with the command line.', { date: d.date }), true);
    const next = new Map(wished);
    if (!next.delete(d.date)) next.set(d.date, d.state !== 'closed');
    setWished(next);
  };

  if (calendar.problem?.status === 404) return <Empty icon="question" title={t('Calendar not found')}><Link class="button" to="/settings/calendars">{t('Calendars')}</Link></Empty>;
  const step = (by: number) => setQuery({ month: monthAt(first, by) });
  const problem = calendar.problem ?? days.problem;
  return (
    <div class="stack">
      <Card title={<><Link to="/settings/calendars">{t('Calendars')}</Link> / <bdi>{name}</bdi></>}
        more={edit && <CalendarActions calendar={c} reload={reload} />}>
        {problem && <ProblemBox problem={problem} again={reload} />}
        {c?.error && <Notice look="bad"><p>{c.error}</p></Notice>}
        <div class="in row">
          <Button icon="left" aria-label={t('Earlier months')} title={t('Earlier months')} work={() => step(-monthsShown)} />
          <Button icon="right" aria-label={t('Later months')} title={t('Later months')} work={() => step(monthsShown)} />
          {c && <Link to={`/jobs?calendar=${encodeURIComponent(name)}`}>{t('{n} jobs', { n: c.jobs })}</Link>}
          {c && <span class="faint">{c.timezone ?? t("the job's own")}</span>}
          {edit && <span class="faint">{t('Click a day to close it, or to open it again.')}</span>}
          <span class="grow" />
          <span class="legend"><span><i class="day closed" />{t('excluded')}</span><span><i class="day makeup" />{t('make-up day')}</span></span>
        </div>
        {days.loading ? <Loading /> : <Months days={days.data?.items ?? []} today={today} wished={wished} click={edit ? click : undefined} />}
      </Card>
      {wished.size > 0 && c && (
        <div class="bulk" role="region" aria-label={t('Changed days')}>
          <b>{t('{n} days changed', { n: wished.size })}</b>
          <Button look="primary" icon="check" work={() => show(() => <SaveDays calendar={c} wished={wished} done={reload} />)}>{t('Review changes')}</Button>
          <Button look="quiet" work={() => setWished(new Map())}>{t('Cancel')}</Button>
        </div>
      )}
    </div>
  );
}

function Months({ days, today, wished, click }: { days: DayState[]; today: string; wished: Map<string, boolean>; click?: (d: DayState) => void }) {
  const months = new Map<string, DayState[]>();
  for (const d of days) months.set(d.date.slice(0, 7), [...(months.get(d.date.slice(0, 7)) ?? []), d]);

  return (
    <div class="in months">
      {[...months].map(([m, list]) => (
        <section key={m} aria-label={m}>
          <h3>{m}</h3>
          <div class="month">
            {weekdayNames.map((w, i) => <span key={w} class="day faint" aria-hidden="true">{nameOfWeekday(i).slice(0, 2)}</span>)}
            {Array.from({ length: (new Date(list[0].date).getUTCDay() + 6) % 7 }, (_, i) => <span key={'e' + i} />)}
            {list.map((d) => <Day key={d.date} day={d} today={d.date === today} wish={wished.get(d.date)} click={click} />)}
          </div>
        </section>
      ))}
    </div>
  );
}

const stateText = { open: 'open', closed: 'excluded', makeup: 'make-up day' } as const;

function Day({ day: d, today, wish, click }: { day: DayState; today: boolean; wish?: boolean; click?: (d: DayState) => void }) {
  const state = wish === undefined ? d.state : wish ? 'closed' : 'open';
  const title = [d.date, t(stateText[state]), wish === undefined && d.why, wish === undefined && d.hours?.join(', ')].filter(Boolean).join(' · ');
  const look = `day ${state} ${today ? 'today' : ''} ${wish === undefined ? '' : 'wished'}`;
  if (!click) return <span class={look} title={title}>{+d.date.slice(8)}</span>;
  return <button class={look} title={title} aria-label={title} aria-pressed={state === 'closed'} onClick={() => click(d)}>{+d.date.slice(8)}</button>;
}

function CalendarActions({ calendar: c, reload }: { calendar: Calendar; reload: () => Promise<void> }) {
  const remove = () => ask({
    title: t('Delete the calendar {name}?', { name: c.name }), button: t('Delete'), danger: true,
    text: <p>{t('A calendar that jobs still use cannot be deleted.')}</p>,
    work: async () => { await call(pathOf(c.name), { method: 'DELETE' }); go('/settings/calendars'); },
  });

  return (
    <>
      <Button icon="download" work={() => show(() => <ImportDialog name={c.name} done={reload} />)}>{t('Import a file')}</Button>
      <Button icon="edit" work={() => show(() => <CalendarDialog calendar={c} done={() => void reload()} />)}>{t('Edit')}</Button>
      <Button icon="trash" aria-label={t('Delete')} title={t('Delete')} work={remove} />
    </>
  );
}

/** The days that were clicked, with a note for them, before they are saved. */
function SaveDays({ calendar: c, wished, done }: { calendar: Calendar; wished: Map<string, boolean>; done: () => Promise<void> }) {
  const [note, setNote] = useState(''), [problem, setProblem] = useState<Problem>();
  const list = (closed: boolean) => [...wished].filter(([, is]) => is === closed).map(([date]) => date).sort().join(', ');
  const closed = list(true), opened = list(false);

  const work = async () => {
    const close = closing();
    const next = [...wished].sort().reduce((spec, [date, closed]) => withDay(spec, date, closed, note.trim()), c);
    try {
      await write(pathOf(c.name), next, c);
      close();
      say(t('{job} saved', { job: c.name }));
      await done();
    } catch (err) { if (err instanceof Problem) setProblem(err); else throw err; }
  };

  return (
    <Dialog title={t('Save {job}?', { job: c.name })} close={closeDialog}>
      <div class="body">
        {closed && <p><b>{t('Closed')}</b>: {closed}</p>}
        {opened && <p><b>{t('Open')}</b>: {opened}</p>}
        <Field id="note" label={t('Note')} hint={t('Such as the name of the holiday. It is shown wherever the day matters.')}>
          <input id="note" autoFocus maxLength={256} value={note} onInput={(e) => setNote(e.currentTarget.value)} />
        </Field>
        <p class="faint">{t('It applies to runs that have not started, of all {n} jobs with this calendar.', { n: c.jobs })}</p>
        {problem && <ProblemBox problem={problem} />}
      </div>
      <footer><Button work={closeDialog}>{t('Back')}</Button><Button look="primary" icon="check" work={work}>{t('Save')}</Button></footer>
    </Dialog>
  );
}

const lines = (text: string) => text.split('\n').map((l) => l.trim()).filter(Boolean);

/** Everything of a calendar but its days; for a new one also a file with them. */
function CalendarDialog({ calendar: c, done }: { calendar?: Calendar; done: (name: string) => void }) {
  const [name, setName] = useState(c?.name ?? ''), [description, setDescription] = useState(c?.description ?? ''), [zone, setZone] = useState(c?.timezone ?? '');
  const [off, setOff] = useState(c?.exclude_weekdays ?? []), [only, setOnly] = useState(c?.hours?.only?.join('\n') ?? ''), [except, setExcept] = useState(c?.hours?.except?.join('\n') ?? '');
  const [problem, setProblem] = useState<Problem>();
  const error = (field: string) => problem?.errors.find((e) => e.field === field || e.field.startsWith(field + '['));

  const work = async () => {
    const close = closing();
    setProblem(undefined);
    const hours = { ...(only.trim() && { only: lines(only) }), ...(except.trim() && { except: lines(except) }) };
    const spec = { ...c, description, timezone: zone.trim() || undefined, exclude_weekdays: off, hours };
    try {
      await write(pathOf(name.trim()), spec, c);
      close();
      say(t('{job} saved', { job: name.trim() }));
      done(name.trim());
    } catch (err) { if (err instanceof Problem) setProblem(err); else throw err; }
  };

  const text = (id: string, label: string, value: string, set: (v: string) => void, field: string, o: { hint?: ComponentChildren; place?: string; rows?: number; focus?: boolean } = {}) => (
    <Field id={id} label={label} hint={o.hint} error={error(field)}>
      {o.rows ? <textarea id={id} rows={o.rows} placeholder={o.place} value={value} onInput={(e) => set(e.currentTarget.value)} />
        : <input id={id} autoFocus={o.focus} placeholder={o.place} value={value} onInput={(e) => set(e.currentTarget.value)} />}
    </Field>
  );
  const toggle = (w: string) => setOff(off.includes(w) ? off.filter((x) => x !== w) : weekdayNames.filter((x) => x === w || off.includes(x)));

  return (
    <Dialog title={c ? c.name : t('New calendar')} close={closeDialog}>
      <div class="body">
        {!c && text('cname', t('Name'), name, setName, 'name', { place: 'holidays', focus: true })}
        {text('cabout', t('Description'), description, setDescription, 'description')}
        {text('czone', t('Time zone'), zone, setZone, 'timezone', { place: 'Europe/Berlin', hint: t('Leave empty to use the time zone of each job.') })}
        <div class={`field ${error('exclude_weekdays') ? 'wrong' : ''}`}>
          <span class="label">{t('Closed weekdays')}</span>
          <div class="chips">{weekdayNames.map((w, i) => <button type="button" key={w} class="chip" aria-pressed={off.includes(w)} onClick={() => toggle(w)}>{nameOfWeekday(i)}</button>)}</div>
        </div>
        {text('conly', t('Open only in these hours'), only, setOnly, 'hours.only', { rows: 2, place: 'mon-fri 08:00-18:00', hint: t('One line each. Leave empty for all day.') })}
        {text('cexcept', t('Closed in these hours'), except, setExcept, 'hours.except', { rows: 2, place: 'sat 12:00-24:00' })}
        {!c && <p class="faint">{t('Afterwards, click the days that are closed, or import a file.')}</p>}
        {problem && problem.errors.every((e) => !e.field) && <ProblemBox problem={problem} />}
      </div>
      <footer><Button work={closeDialog}>{t('Cancel')}</Button><Button look="primary" disabled={!name.trim()} work={work}>{c ? t('Save') : t('Create')}</Button></footer>
    </Dialog>
  );
}

/** Reads the days of an ICS or CSV file into a calendar, after showing how many there are. */
function ImportDialog({ name, done }: { name: string; done: () => Promise<void> }) {
  const [file, setFile] = useState<{ text: string; format: string }>(), [add, setAdd] = useState(true);
  const [would, setWould] = useState<Import>(), [problem, setProblem] = useState<Problem>();
  const key = useMemo(onceKey, [file, add]); // a second press means the same import

  const send = (f: { text: string; format: string }, adding: boolean, dry: boolean, headers: Record<string, string>) =>
    call<Import>(`${pathOf(name)}/import${query({ format: f.format, mode: adding ? 'add' : 'replace', dry_run: dry })}`,
      { method: 'POST', body: f.text, headers: { ...headers, 'Content-Type': f.format === 'csv' ? 'text/csv' : 'text/calendar' } });
  const guarded = async (work: () => Promise<void>) => {
    setProblem(undefined);
    try { await work(); } catch (err) { if (err instanceof Problem) setProblem(err); else throw err; }
  };

  const choose = (chosen: File | undefined) => guarded(async () => {
    setFile(undefined);
    setWould(undefined);
    if (!chosen) return;

    const f = { text: await chosen.text(), format: /\.csv$/i.test(chosen.name) ? 'csv' : 'ics' };
    setWould((await send(f, add, true, {})).data);
    setFile(f);
  });
  const work = () => guarded(async () => {
    const close = closing();
    await send(file!, add, false, key);
    close();
    say(t('{job} saved', { job: name }));
    await done();
  });

  return (
    <Dialog title={t('Import days into {name}', { name })} close={closeDialog}>
      <div class="body">
        <Field id="cfile" label={t('File')} hint={t('iCalendar (.ics) or CSV (date, end, kind, note). Events with 班 in their name are make-up workdays.')}>
          <input id="cfile" type="file" accept=".ics,.csv,text/calendar,text/csv" onChange={(e) => choose(e.currentTarget.files?.[0])} />
        </Field>
        <label class="check"><input type="checkbox" checked={!add} onChange={() => setAdd(!add)} />{t('Replace the days that it has now')}</label>
        {would && <p><b>{t('{n} days off, {m} make-up workdays in the file', { n: would.imported.excludes, m: would.imported.includes })}</b>
          {!!would.imported.ignored && <span class="faint"> {t('{n} other events are left out', { n: would.imported.ignored })}</span>}</p>}
        {problem && <ProblemBox problem={problem} />}
      </div>
      <footer><Button work={closeDialog}>{t('Cancel')}</Button><Button look="primary" disabled={!file} work={work}>{t('Import')}</Button></footer>
    </Dialog>
  );
}
