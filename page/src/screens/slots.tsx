import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get, now, query } from '../api';
import { t } from '../i18n';
import { useGet } from '../live';
import { AppField, learnApps } from '../parts/apps';
import { Button, Card, Empty, Loading, Notice, outcomeText, ProblemBox } from '../parts/basic';
import { isoOf, listRanges, presetText, RangeChips, rangeOf } from '../parts/ranges';
import { slotText, slotTone } from '../parts/slots';
import { showWhy } from '../parts/why';
import { go, here, Link, setQuery, useOneOf } from '../router';
import { clock, day, ms, stamp } from '../time';
import type { JobSlots, Slot, SlotBucket, Slots } from '../types';

// What became of each due time of a night, or of another range: a strip per job, and a hole where nothing is known of one. Each
// of them answers why.

type State = Slot['state'];
const tickOf = (s: State) => (s === 'hole' || s === 'ahead' ? s : slotTone(s));
/** What one looks for first. */
const worst: State[] = ['hole', 'missed', 'lost', 'failed', 'timed_out', 'killed', 'waiting', 'running', 'skipped', 'paused', 'superseded', 'succeeded', 'ahead'];
const wrong = new Set<State>(worst.slice(0, 7));

const page = 50, step = 100; // jobs of an answer, and those that are shown at first and at each press

interface Asked { app: string; job: string; from: string; to: string }

/** The strips of the jobs, those of one app after another. */
async function readStrips(o: Asked, most: number, signal: AbortSignal): Promise<Slots> {
  let all: Slots | undefined, cursor: string | undefined;
  do {
    const part: Slots = await get<Slots>(`/api/v1/stats/slots${query({ from: o.from, to: o.to, app: o.app, job_id: o.job, most: 100, parts: 96, limit: page, cursor })}`, signal);
    all = all ? { ...part, items: [...all.items, ...part.items] } : part;
    cursor = part.next;
  } while (cursor !== undefined && all.items.length < most);
  return all;
}

export function SlotStrips() {
  const q = here.value.search, app = q.get('app') ?? '', job = q.get('job_id') ?? '', own = q.get('from') && q.get('to');
  const last = useOneOf('last', listRanges), preset = own ? undefined : last || 'night', [most, setMost] = useState(step), only = q.get('only') === 'wrong';
  const range = () => {
    if (!preset) return { from: q.get('from')!, to: q.get('to')! };
    const r = rangeOf(preset);
    return { from: isoOf(r.from)!, to: isoOf(r.to ?? now())! };
  };
  const { data, problem, reload } = useGet<Slots>([preset ?? `${q.get('from')} ${q.get('to')}`, app, job, most].join('|'), {
    every: 30_000, always: true, read: async (_, signal) => ({ data: await readStrips({ app, job, ...range() }, most, signal), etag: '' }),
  });
  useEffect(() => { if (data) learnApps(data.items); }, [data]);
  const items = (data?.items ?? []).filter((j) => j.total > 0 && (!only || sumOf(j).some(([s]) => wrong.has(s))));
  const apps = [...new Set(items.map((j) => j.app))].sort();

  return (
    <>
      <div class="filters">
        <RangeChips of={listRanges} value={preset} set={(p) => setQuery({ last: p, from: undefined, to: undefined })} clear={() => setQuery({ last: undefined })} />
        <AppField value={app} set={(v) => setQuery({ app: v, job_id: undefined })} />
        {job && <button class="chip" aria-pressed="true" onClick={() => setQuery({ job_id: undefined })}>{t('Job')}: <bdi>{data?.items[0]?.job ?? job}</bdi> ×</button>}
        <label class="check small"><input type="checkbox" checked={only} onChange={() => setQuery({ only: only ? undefined : 'wrong' })} />{t('Only jobs with problems')}</label>
      </div>
      <Card title={data ? `${preset ? presetText(preset) + ': ' : ''}${stamp(data.from).slice(0, 16)} – ${day(data.from) === day(data.to) ? clock(data.to).slice(0, 5) : stamp(data.to).slice(0, 16)}` : t('Scheduled times')} more={<Legend />}>
        {problem && <ProblemBox problem={problem} again={reload} />}
        {!data ? !problem && <Loading rows={8} /> : items.length === 0 ? <Empty icon="clock" title={only ? t('No problems in this time range') : t('Nothing was scheduled in this time range')} /> : (
          <table class="strips"><tbody>
            <tr class="axis"><th /><td><Axis from={ms(data.from)} to={ms(data.to)} /></td><td class="thin-hide" /></tr>
            {apps.map((a) => <AppStrips key={a} app={a} jobs={items.filter((j) => j.app === a)} from={ms(data.from)} to={ms(data.to)} alone={apps.length === 1} />)}
          </tbody></table>
        )}
        {data?.next && <div class="more-row"><Button work={() => setMost(most + step)}>{t('Show more')}</Button></div>}
        {data?.items.some((j) => j.uncounted) && <div class="in"><Notice look="warn"><p>{t('Some jobs have too many scheduled times to show. Choose a shorter time range.')}</p></Notice></div>}
      </Card>
    </>
  );
}

const Legend = () => <span class="legend">{([['succeeded'], ['failed', 'timed_out', 'lost'], ['missed', 'killed', 'waiting'], ['hole'], ['skipped', 'paused', 'superseded'], ['running'], ['ahead']] as const).map((of) => <span key={of[0]}><i class={`tick ${tickOf(of[0])}`} />{of.map(slotText).join(t(', '))}</span>)}</span>;

/** How many due times of a job are in which state, the worst first. */
function sumOf(j: JobSlots): [State, number][] {
  const n = new Map<State, number>();
  for (const s of j.slots ?? []) n.set(s.state, (n.get(s.state) ?? 0) + 1);
  for (const b of j.buckets ?? []) for (const [s, of] of Object.entries(b.states)) n.set(s as State, (n.get(s as State) ?? 0) + of);
  return worst.flatMap((s) => (n.has(s) ? [[s, n.get(s)!] as [State, number]] : []));
}

const badness = (j: JobSlots) => worst.indexOf(sumOf(j)[0]?.[0] ?? 'ahead');

function AppStrips({ app, jobs, from, to, alone }: { app: string; jobs: JobSlots[]; from: number; to: number; alone: boolean }) {
  const sums = new Map<State, number>();
  for (const j of jobs) for (const [s, n] of sumOf(j)) sums.set(s, (sums.get(s) ?? 0) + n);
  return (
    <>
      {!alone && <tr class="app"><th scope="rowgroup"><Link to={`/jobs${query({ app })}`}><bdi>{app}</bdi></Link></th><td /><td class="small thin-hide"><Sums of={worst.flatMap((s) => (sums.has(s) ? [[s, sums.get(s)!]] : []))} /></td></tr>}
      {[...jobs].sort((a, b) => badness(a) - badness(b) || a.job.localeCompare(b.job)).map((j) => (
        <tr key={j.job_id}>
          <th scope="row"><Link to={`/jobs/${j.job_id}`}><bdi>{j.job}</bdi></Link></th>
          <td><Strip j={j} from={from} to={to} /></td>
          <td class="small thin-hide"><Sums of={sumOf(j)} /></td>
        </tr>
      ))}
    </>
  );
}

const Sums = ({ of }: { of: [State, number][] }) => <>{of.slice(0, 3).map(([s, n], i) => <span key={s} class={`nowrap ${wrong.has(s) ? 'bad-text' : 'faint'}`}>{i > 0 && ' · '}{n.toLocaleString()} {slotText(s)}</span>)}</>;

function Strip({ j, from, to }: { j: JobSlots; from: number; to: number }) {
  const left = (at: string) => `${(100 * (ms(at) - from)) / (to - from)}%`;
  const step = (e: JSX.TargetedKeyboardEvent<HTMLDivElement>) => { // a strip is one stop of the tab key
    const by = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0, ticks = [...e.currentTarget.querySelectorAll('button')];
    if (by) ticks[ticks.indexOf(e.target as HTMLButtonElement) + by]?.focus();
  };
  return (
    <div class="strip" role="group" onKeyDown={step} aria-label={t('Scheduled times of {job}', { job: j.job })}>
      {j.slots?.map((s, i) => {
        const next = j.slots![i + 1], room = next && `max(2px, calc(${(100 * (ms(next.due) - ms(s.due))) / (to - from)}% - 1px))`; // no tick covers the next one
        const label = `${stamp(s.due)} · ${slotText(s.state)}${s.again ? ` · ${t('rerun: {result}', { result: t(outcomeText[s.again]) })}` : ''}`;
        return <button key={s.due} tabIndex={i === 0 ? 0 : -1} class={`tick ${tickOf(s.state)} ${s.again === 'succeeded' ? 'again' : ''}`} style={{ left: left(s.due), maxWidth: room }} aria-label={label} title={label} onClick={() => open(j, s)} />;
      })}
      {j.buckets?.map((b, i) => <Part key={b.from} j={j} b={b} first={i === 0} left={left(b.from)} width={`${(100 * (ms(b.to) - ms(b.from))) / (to - from)}%`} />)}
    </div>
  );
}

/** A part of the strip of a frequent job: what is worst in it is what it shows, as high as its share. */
function Part({ j, b, first, left, width }: { j: JobSlots; b: SlotBucket; first: boolean; left: string; width: string }) {
  const states = worst.filter((s) => (b.states[s] ?? 0) > 0), bad = states.filter((s) => wrong.has(s)).reduce((n, s) => n + b.states[s]!, 0);
  const label = `${stamp(b.from)} – ${clock(b.to)} · ${states.map((s) => `${b.states[s]} ${slotText(s)}`).join(', ')}`;
  return (
    <button class="tick part" tabIndex={first ? 0 : -1} style={{ left, width }} aria-label={label} title={label} onClick={() => (b.worst ? open(j, b.worst) : setQuery({ last: undefined, from: b.from, to: b.to, job_id: j.job_id, app: undefined }))}>
      {bad < b.total && <i class={`tick ${tickOf(states.find((s) => !wrong.has(s)) ?? states[0])}`} style={{ height: `${(100 * (b.total - bad)) / b.total}%` }} />}
      {bad > 0 && <i class={`tick ${tickOf(states[0])}`} style={{ height: `${Math.max(25, (100 * bad) / b.total)}%` }} />}
    </button>
  );
}

/** What ran opens its run; what did not says why. */
function open(j: JobSlots, s: Slot) {
  const ran = s.run_id && (s.reason_code === 'nothing_to_do' || !['missed', 'skipped', 'superseded'].includes(s.state));
  if (ran) go(`/runs/${s.run_id}`);
  else showWhy({ id: j.job_id, name: j.job }, s.due, j.timezone);
}

const hour = 3600_000;

function Axis({ from, to }: { from: number; to: number }) {
  const every = [300_000, 600_000, 1_800_000, hour, 2 * hour, 6 * hour, 12 * hour, 24 * hour].find((s) => (to - from) / s <= 8) ?? 48 * hour;
  const ticks: number[] = [], zone = ms(stamp(from).replace(' ', 'T') + 'Z') - Math.floor(from / 1000) * 1000; // ticks lie on whole hours of the zone
  for (let at = Math.ceil((from + zone) / every) * every - zone; at < to; at += every) ticks.push(at);
  return <div class="strip ticks" aria-hidden="true">{ticks.map((at) => <span key={at} style={{ left: `${(100 * (at - from)) / (to - from)}%` }}>{every >= 12 * hour ? day(at).slice(5) : clock(at).slice(0, 5)}</span>)}</div>;
}
