import { computed } from '@preact/signals';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { asProblem, download, may, now, onceKey, post, Problem, query } from '../api';
import { t } from '../i18n';
import { following, onNews, second } from '../live';
import { Button, Card, Choice, closeDialog, copy, Dialog, Empty, Field, Head, Loading, Notice, ProblemBox, show, Until } from '../parts/basic';
import { AppField, learnApps } from '../parts/apps';
import { dueTimes, markText, type Ahead, type Due } from '../parts/dues';
import { here, Link, setQuery, useOneOf } from '../router';
import { clock, day, ms, stamp, weekday } from '../time';
import type { NewToken } from '../types';

// Of each span: how long it is, and how many due times a job may have in it that are told one by one.
const spans = { hour: { hours: 1, most: 30 }, day: { hours: 24, most: 24 }, week: { hours: 168, most: 28 } };
type Span = keyof typeof spans;

export function Upcoming() {
  const span = useOneOf('span', Object.keys(spans) as Span[]) || 'hour';
  const app = here.value.search.get('app') ?? '';
  const [list, setList] = useState<Ahead & { from: number; to: number }>(), [problem, setProblem] = useState<Problem>();
  const load = useRef<() => Promise<void>>(), pages = useRef(1);
  useEffect(() => {
    let stop = new AbortController(), soon = 0;
    load.current = async () => {
      stop.abort();
      const mine = (stop = new AbortController());
      const from = now(), to = from + spans[span].hours * 3600_000;
      try {
        let a = await dueTimes({ from, to, most: spans[span].most, app }, mine.signal);
        for (let n = 1; n < pages.current && a.next; n++) { // as many as there were
          const next = await dueTimes({ from, to, most: spans[span].most, app, cursor: a.next }, mine.signal);
          a = { ...a, items: [...a.items, ...next.items], next: next.next };
        }
        learnApps([...a.items, ...(a.frequent ?? [])]);
        if (!mine.signal.aborted) { setList({ ...a, from, to }); setProblem(undefined); }
      } catch (err) { if (!mine.signal.aborted) setProblem(asProblem(err)); }
    };
    setList(undefined);
    pages.current = 1;
    void load.current();
    const timer = setInterval(() => { if (!document.hidden && following.value) void load.current!(); }, 60_000);
    const off = onNews((n) => { if (following.value && (!n || n.type === 'job' || n.type === 'pause' || n.type === 'change')) soon ||= window.setTimeout(() => { soon = 0; void load.current!(); }, 3000); });
    return () => { clearInterval(timer); clearTimeout(soon); off(); stop.abort(); };
  }, [span, app]);
  const items = list?.items ?? [];
  const over = useMemo(() => computed(() => { // how many of them have passed: all is drawn again only when one more has
    void second.value;
    const ahead = items.findIndex((d) => ms(d.due) > now() - 500);
    return ahead < 0 ? items.length : ahead;
  }), [list]).value;
  const rows = items.slice(over);
  const more = async () => {
    const next = await dueTimes({ from: list!.from, to: list!.to, most: spans[span].most, app, cursor: list!.next });
    pages.current++;
    setList({ ...list!, items: [...list!.items, ...next.items], next: next.next });
  };
  const days = new Map<string, Due[]>();
  for (const r of rows) {
    const d = day(r.due), of = days.get(d);
    of ? of.push(r) : days.set(d, [r]);
  }
  const frequent = list?.frequent ?? [], jobs = new Set(rows.map((r) => r.job_id)).size;
  return (
    <>
      <Head title={t('Upcoming')} sub={list && <span>{[(rows.length > 0 || !frequent.length) && t(jobs === 1 ? '{n} runs of one job' : '{n} runs of {jobs} jobs', { n: rows.length.toLocaleString() + (list.next ? '+' : ''), jobs }), frequent.length > 0 && t('{n} frequent jobs', { n: list.frequent_count!.toLocaleString() })].filter(Boolean).join(' · ')}</span>}>
        <AppField value={app} set={(v) => setQuery({ app: v })} />
        <Choice label={t('Time range')} value={span} set={(v) => setQuery({ span: v === 'hour' ? undefined : v })} options={[{ value: 'hour', text: t('Next hour') }, { value: 'day', text: t('Next day') }, { value: 'week', text: t('Next week') }]} />
        <Button icon="upcoming" work={() => show(() => <Subscribe app={app} />)}>{t('Subscribe')}</Button>
      </Head>
      <div class="stack">
        {problem && <ProblemBox problem={problem} again={() => load.current!()} />}
        {list?.truncated && <Notice look="warn"><p>{t('Too many jobs to show them all. Choose an app.')}</p></Notice>}
        {frequent.length > 0 && (
          <Card title={t('Frequent jobs')} more={list!.frequent_count! > frequent.length && <span class="faint small">{t('and {n} more', { n: list!.frequent_count! - frequent.length })}</span>}>
            <div class="in chips">{frequent.slice(0, 40).map((f) => <Link key={f.job_id} class="chip" to={`/jobs/${f.job_id}`}><bdi>{f.job}</bdi> <span class="faint small">×{f.count.toLocaleString()}</span></Link>)}{frequent.length > 40 && <span class="faint small">{t('and {n} more', { n: frequent.length - 40 })}</span>}</div>
          </Card>
        )}
        {!list ? !problem && <section class="card"><Loading rows={8} /></section> : rows.length === 0 ? <section class="card"><Empty icon="upcoming" title={frequent.length ? t('No other upcoming runs') : t('No upcoming runs')}><p>{t('Runs of active jobs appear here. Choose a longer time range to see more.')}</p></Empty></section>
          : span === 'week' ? <WeekCalendar days={days} open={here.value.search.get('day') ?? ''} whole={!list.next} />
          : [...days].map(([d, items]) => <DayList key={d} date={d} items={items} />)}
        {list?.next && <div class="more-row"><Button work={more}>{t('Show more')}</Button></div>}
      </div>
    </>
  );
}

const Mark = ({ due }: { due: Due }) => (due.mark ? <span class="tag warn">{markText(due, due.timezone)}</span> : null);

const DayList = ({ date, items }: { date: string; items: Due[] }) => (
  <Card title={<>{weekday(items[0].due)} {date} <span class="count">{items.length.toLocaleString()}</span></>}>
    <table class="duetimes"><tbody>{items.map((r) => (
      <tr key={r.job_id + r.due}><td class="mono nowrap" style={{ width: '96px' }}>{clock(r.due)}</td><td><Link to={`/jobs/${r.job_id}`}><bdi>{r.job}</bdi></Link> {r.app !== 'default' && <span class="faint small"><bdi>{r.app}</bdi></span>} <Mark due={r} /></td><td class="num faint nowrap"><Until at={r.due} zone={r.timezone} /></td></tr>
    ))}</tbody></table>
  </Card>
);

const shownOfDay = 9;

/** A column for each day; the day that is chosen stands below with all of its due times. */
function WeekCalendar({ days, open, whole }: { days: Map<string, Due[]>; open: string; whole: boolean }) {
  const noon = Date.parse(`${day(now())}T12:00:00Z`); // dates alone: their days go on whatever clocks do
  const dates = Array.from({ length: 7 }, (_, i) => new Date(noon + i * 86400_000).toISOString().slice(0, 10));
  const last = whole ? '9' : [...days.keys()].pop()!;
  return (
    <>
      <div class="week">
        {dates.map((d, i) => {
          const items = days.get(d) ?? [];
          return (
            <section key={d} class={`${i === 0 ? 'today' : ''} ${open === d ? 'open' : ''}`} aria-label={d}>
              <header><h3>{weekday(noon + i * 86400_000, 'UTC')} <b>{+d.slice(8)}</b></h3>{items.length > 0 && <span class="count">{items.length.toLocaleString()}{d >= last && !whole ? '+' : ''}</span>}</header>
              <ul>{items.slice(0, shownOfDay).map((r) => <li key={r.job_id + r.due}><span class="mono">{clock(r.due).slice(0, 5)}</span> <Link to={`/jobs/${r.job_id}`} title={`${stamp(r.due)} ${r.app}/${r.job}`}><bdi>{r.job}</bdi></Link></li>)}</ul>
              {items.length === 0 && <p class="faint">{d > last ? '…' : '—'}</p>}
              {items.length > shownOfDay && <button class="plainlink small" aria-expanded={open === d} onClick={() => setQuery({ day: open === d ? undefined : d })}>{t('and {n} more', { n: items.length - shownOfDay })}</button>}
            </section>
          );
        })}
      </div>
      {days.get(open) && <DayList date={open} items={days.get(open)!} />}
    </>
  );
}

/** How to have it in a calendar program. These cannot sign in here: they get a token of their own that can only read. */
function Subscribe({ app }: { app: string }) {
  const path = `/api/v1/upcoming.ics${query({ app })}`, address = location.origin + path;
  const [token, setToken] = useState<string>(), [problem, setProblem] = useState<Problem>();
  const { name, key } = useMemo(() => ({ name: `calendar-${stamp(now(), 'UTC').replace(/\D/g, '')}`, key: onceKey() }), [app]); // who presses again gets the same token
  const make = async () => {
    setProblem(undefined);
    try {
      setToken((await post<NewToken>('/api/v1/tokens', { name, role: 'viewer', expires: '8760h', ...(app && { apps: [app] }) }, key)).token);
    } catch (err) { if (err instanceof Problem) setProblem(err); else throw err; }
  };
  return (
    <Dialog title={t('Subscribe from a calendar app')} close={closeDialog} wide precious={!!token}>
      <div class="body">
        <p>{t('Enter this address in the calendar app. When it asks for a user name and password, enter any name, and as the password a viewer token created for it.')}</p>
        <Field id="feed" label={t('Address')}><div class="row"><input id="feed" class="mono grow" readOnly value={address} onFocus={(e) => e.currentTarget.select()} /><Button icon="copy" work={() => copy(address)}>{t('Copy')}</Button></div></Field>
        {token ? (
          <Field id="feed-token" label={t('Password')} hint={t('Shown only once. It is read-only and valid for a year.')}><div class="row"><input id="feed-token" class="mono grow" readOnly value={token} onFocus={(e) => e.currentTarget.select()} /><Button icon="copy" work={() => copy(token)}>{t('Copy')}</Button></div></Field>
        ) : may('admin') ? <div><Button icon="key" work={make}>{t('Create a token for it')}</Button></div> : <p class="faint">{t('Ask an admin for a viewer token.')}</p>}
        {problem && <ProblemBox problem={problem} />}
        <p class="faint small">{t('A job that runs more than six times a day gets one entry for that day.')}</p>
      </div>
      <footer><Button icon="download" work={() => download(path, 'go-crontab.ics')}>{t('Download as file')}</Button><Button look="primary" work={closeDialog}>{t('Close')}</Button></footer>
    </Dialog>
  );
}
