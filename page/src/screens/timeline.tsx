import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { all, asProblem, get, now, Problem, query } from '../api';
import { lang, t, type Text } from '../i18n';
import { following, onNews, streaming } from '../live';
import { Button, Card, Choice, Empty, Head, Loading, Notice, outcomeOf, outcomeText, ProblemBox, Reason, Tabs, toneOf, useCounted } from '../parts/basic';
import { outages, type Outage } from '../parts/outage';
import { AppField, learnApps } from '../parts/apps';
import { RangeChips, rangeOf } from '../parts/ranges';
import { countMinutes, dueTimes, type Ahead, type Counts, type Due } from '../parts/dues';
import { go, here, Link, setQuery } from '../router';
import { theme } from '../theme';
import { SlotStrips } from './slots';
import { clock, coarse, day, inUTC, ms, span, stamp, weekday } from '../time';
import type { AuditEntry, Page, Run } from '../types';

export function Timeline({ tab }: { tab: string }) {
  return (
    <>
      <Head title={t('Timeline')} />
      <Tabs current={tab} items={[{ id: 'runs', to: '/timeline', text: t('Past runs') }, { id: 'slots', to: '/timeline/slots', text: t('Scheduled times') }, { id: 'week', to: '/timeline/week', text: t('Weekly heat map') }]} />
      {tab === 'week' ? <Week /> : tab === 'slots' ? <SlotStrips /> : tab === 'runs' ? <Lanes />
        : <Empty icon="question" title={t('Page not found')}><Link class="button" to="/timeline">{t('Timeline')}</Link></Empty>}
    </>
  );
}

const most = 2000, mostLanes = 60, laneHeight = 26, gutter = 150, axis = 24;

/** What ran when: a lane for each job, or for each node. */
function Lanes() {
  const by = here.value.search.get('by') === 'node' ? 'node' : 'job', app = here.value.search.get('app') ?? '';
  const [view, setView] = useState({ span: 15 * 60_000, end: 0 }); // end 0: now
  const [runs, setRuns] = useState<Run[]>(), [problem, setProblem] = useState<Problem>(), [cut, setCut] = useState(false), [before, setBefore] = useState<number>();
  const [tip, setTip] = useState<{ x: number; y: number; run?: Run; gap?: Outage }>();
  const [gaps, setGaps] = useState<Outage[]>([]);
  const box = useRef<HTMLDivElement>(null), canvas = useRef<HTMLCanvasElement>(null);
  const drawn = useRef<{ x: number; y: number; w: number; run: Run }[]>([]), bands = useRef<{ x: number; w: number; gap: Outage }[]>([]);
  const [beat, setBeat] = useState(0);
  const end = view.end || now();
  useEffect(() => {
    const stop = new AbortController();
    let soon = 0, began = 0, loading = false, again = false;
    const load = async () => {
      soon = 0;
      loading = true;
      again = false;
      began = performance.now();
      const to = view.end || now(), from = to - view.span;
      try {
        // A run may have begun long before it is looked at: those that execute are asked for as well, and the latest of
        // those that were due in the day before.
        const begin = from - view.span * 0.2, range = { app, from: new Date(begin).toISOString(), to: new Date(to).toISOString() };
        let more = false;
        const [list, running, early, missed, ended] = await Promise.all([
          all<Run>(`/api/v1/runs${query(range)}`, most, stop.signal, (_, m) => { more = m; }),
          all<Run>(`/api/v1/runs${query({ state: 'running', app })}`, 200, stop.signal),
          get<Page<Run>>(`/api/v1/runs${query({ app, state: 'ended', from: new Date(begin - 24 * hour).toISOString(), to: range.from, limit: 200 })}`, stop.signal),
          all<Run>(`/api/v1/runs${query({ ...range, outcome: 'missed' })}`, 400, stop.signal),
          get<{ items: AuditEntry[] }>(`/api/v1/audit${query({ from: range.from, to: range.to, kind: 'session', limit: 200 })}`, stop.signal).catch(() => ({ items: [] })), // told to those who may read it
        ]);
        if (stop.signal.aborted) return;
        setCut(more);
        // Without all runs nobody knows what was started in time: the rest of the span is not judged.
        const known = more ? Math.max(from, Math.min(...list.map((r) => ms(r.due)))) : from;
        const told = new Set(list.map((r) => r.id + r.due));
        learnApps(list);
        setGaps(app ? [] : outages([...list, ...missed.filter((r) => !told.has(r.id + r.due))], ended.items, known, to));
        const last = early.next === undefined ? undefined : early.items[early.items.length - 1];
        setBefore(last ? ms(last.due) : begin - 24 * hour);
        setRuns([...new Map([...early.items, ...running, ...list].map((r) => [r.id, r])).values()].filter((r) => r.started));
        setProblem(undefined);
      } catch (err) {
        if (stop.signal.aborted) return;
        setProblem(asProblem(err));
      }
      loading = false;
      if (again) reload();
    };
    // News may come faster than all is read: what is under way is read to its end, and once more behind it.
    const reload = () => { if (loading) again = true; else soon ||= window.setTimeout(load, Math.max(300, began + 1500 - performance.now())); };
    void load();
    const off = onNews((n) => { if (!view.end && following.value && (!n || n.type.startsWith('run'))) reload(); });
    const timer = setInterval(() => { if (!view.end && following.value && !document.hidden && !streaming.value) reload(); }, 5000);
    const tick = setInterval(() => { if (!view.end && following.value && !document.hidden) setBeat((b) => b + 1); }, 1000);
    return () => { stop.abort(); off(); clearTimeout(soon); clearInterval(timer); clearInterval(tick); };
  }, [view.span, view.end, app]);

  const lanes = useMemo(() => {
    const m = new Map<string, Run[]>();
    for (const r of runs ?? []) {
      const start = ms(r.started), stop = r.ended ? ms(r.ended) : end;
      if (stop < end - view.span || start > end) continue;
      const k = by === 'node' ? r.node : (r.app === 'default' ? '' : r.app + '/') + r.job;
      m.set(k, [...(m.get(k) ?? []), r]);
    }
    // Where there is no room for all, what went wrong is what one looks for.
    const bad = ([, list]: [string, Run[]]) => Math.min(...list.map((r) => ({ bad: 0, warn: 1, busy: 2, good: 2, mute: 2 })[toneOf(outcomeOf(r))]));
    const all = [...m], some = all.length > mostLanes ? all.map((l) => [bad(l), l] as const).sort((a, b) => a[0] - b[0] || a[1][0].localeCompare(b[1][0])).slice(0, mostLanes).map(([, l]) => l) : all;
    return { list: some.sort((a, b) => a[0].localeCompare(b[0])), more: all.length - some.length };
  }, [runs, by, view.span, view.end, Math.floor(end / 1000)]);

  useEffect(() => {
    const c = canvas.current, b = box.current;
    if (!c || !b) return;
    const width = b.clientWidth, left = width < 600 ? 90 : gutter, height = lanes.list.length * laneHeight + axis, scale = devicePixelRatio || 1;
    c.width = width * scale; c.height = height * scale; c.style.height = height + 'px';
    const g = c.getContext('2d')!, css = getComputedStyle(document.documentElement), v = (n: string) => css.getPropertyValue(n).trim();
    g.scale(scale, scale);
    g.clearRect(0, 0, width, height);
    const from = end - view.span, x = (at: number) => left + ((at - from) / view.span) * (width - left - 8);
    g.font = '12px system-ui, sans-serif';
    const steps = [10e3, 30e3, 60e3, 120e3, 300e3, 600e3, 1800e3, 3600e3, 7200e3, 21600e3, 43200e3, 86400e3], step = steps.find((s) => (view.span / s) * 70 < width - left) ?? 86400e3;
    g.textBaseline = 'middle';
    for (let at = Math.ceil(from / step) * step; at <= end; at += step) {
      g.fillStyle = v('--line'); g.fillRect(x(at), 0, 1, height - axis);
      g.fillStyle = v('--faint'); g.textAlign = 'center';
      const label = step < 60e3 ? clock(at) : clock(at).slice(0, 5);
      if (x(at) > left + 14 && x(at) < width - 20) g.fillText(step >= 86400e3 ? day(at).slice(5) : label, x(at), height - axis / 2);
    }
    bands.current = gaps.filter((o) => o.to > from && o.from < end).map((gap) => { const a = Math.max(left, x(gap.from)); return { x: a, w: Math.max(4, Math.min(x(gap.to), width - 8) - a), gap }; });
    for (const b of bands.current) {
      g.fillStyle = v('--bad-soft'); g.fillRect(b.x, 0, b.w, height - axis);
      g.fillStyle = v('--bad-dot'); g.fillRect(b.x, height - axis - 3, b.w, 3);
      const label = `${t('Outage')} ${span(b.gap.to - b.gap.from)}`;
      const w = g.measureText(label).width;
      if (w < b.w - 8) { g.clearRect(b.x + (b.w - w) / 2 - 20, height - axis + 1, w + 40, axis - 1); g.fillStyle = v('--bad'); g.textAlign = 'center'; g.fillText(label, b.x + b.w / 2, height - axis / 2); }
    }
    drawn.current = [];
    lanes.list.forEach(([name, list], i) => {
      const y = i * laneHeight;
      g.fillStyle = v('--line'); g.fillRect(0, y + laneHeight - 0.5, width, 0.5);
      g.fillStyle = v('--text'); g.textAlign = 'left';
      let label = name;
      while (label.length > 3 && g.measureText(label).width > left - 20) label = label.slice(0, -2);
      g.fillText(label === name ? name : label + '…', 10, y + laneHeight / 2);
      for (const r of list) {
        const a = Math.max(left, x(ms(r.started))), z = Math.max(a + 3, x(r.ended ? ms(r.ended) : end));
        g.fillStyle = v(`--${toneOf(outcomeOf(r))}-dot`);
        const tall = ['bad', 'warn'].includes(toneOf(outcomeOf(r)));
        g.beginPath();
        g.roundRect(a, y + (tall ? 4 : 7), z - a, laneHeight - (tall ? 8 : 14), 2);
        g.fill();
        drawn.current.push({ x: a, y, w: z - a, run: r });
      }
    });
  }, [lanes, gaps, theme.value, inUTC.value, lang.value, beat]);

  const hit = (e: PointerEvent | MouseEvent) => {
    const r = canvas.current!.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
    let best: { d: number; run: Run } | undefined;
    for (const d of drawn.current) {
      if (y < d.y || y > d.y + laneHeight) continue;
      const off = x < d.x ? d.x - x : x > d.x + d.w ? x - d.x - d.w : 0;
      if (off < 5 && (!best || off < best.d)) best = { d: off, run: d.run };
    }
    return best?.run;
  };
  const hitGap = (e: PointerEvent | MouseEvent) => {
    const x = e.clientX - canvas.current!.getBoundingClientRect().left;
    return bands.current.find((b) => x >= b.x - 2 && x <= b.x + b.w + 2)?.gap;
  };
  const drag = useRef<{ x: number; end: number; moved: boolean }>();
  const zoom = (f: number) => setView((v) => ({ ...v, span: Math.min(7 * 86400_000, Math.max(60_000, v.span * f)) }));
  const pan = (f: number) => setView((v) => { const e = (v.end || now()) + f * v.span; return { ...v, end: e > now() ? 0 : e }; });
  const show = (p: string) => { const { from, to } = rangeOf(p); setView({ span: Math.max(60_000, (to ?? now()) - from), end: to ?? 0 }); };
  return (
    <Card title={<>{stamp(end - view.span)} – {view.end ? stamp(end) : t('now')}</>} more={<>
      <AppField value={app} set={(v) => setQuery({ app: v })} />
      <Choice label={t('Group by')} value={by} set={(v) => setQuery({ by: v === 'job' ? undefined : v })} options={[{ value: 'job', text: t('By job') }, { value: 'node', text: t('By node') }]} />
      <Choice label={t('Time range')} value={String(view.span)} set={(v) => setView({ ...view, span: +v })} options={[900e3, 3600e3, 21600e3, 86400e3].map((v) => ({ value: String(v), text: coarse(v) }))} />
      <RangeChips of={['night', 'today', 'week']} set={show} />
      <Button icon="left" aria-label={t('Earlier')} work={() => pan(-0.5)} /><Button icon="right" aria-label={t('Later')} disabled={!view.end} work={() => pan(0.5)} />
      {view.end > 0 && <Button work={() => setView({ ...view, end: 0 })}>{t('now')}</Button>}
    </>}>
      {problem && <ProblemBox problem={problem} />}
      {!runs ? !problem && <Loading rows={6} /> : lanes.list.length === 0 ? <Empty icon="timeline" title={t('No runs in this time range')}>{before !== undefined && <p>{t('Runs scheduled before {at} are shown only if they are still running.', { at: stamp(before) })}</p>}</Empty> : (
        <div class="lanes" ref={box} onWheel={(e) => { if (e.ctrlKey || e.metaKey) { e.preventDefault(); zoom(e.deltaY > 0 ? 1.25 : 0.8); } }}
          onPointerDown={(e) => { drag.current = { x: e.clientX, end, moved: false }; }}
          onPointerMove={(e) => {
            const d = drag.current;
            if (d && e.buttons && Math.abs(e.clientX - d.x) > 4) {
              d.moved = true;
              const to = d.end - ((e.clientX - d.x) / (box.current!.clientWidth - gutter)) * view.span;
              setView((v) => ({ ...v, end: to > now() ? 0 : to }));
              setTip(undefined);
              return;
            }
            const run = hit(e), gap = run ? undefined : hitGap(e);
            setTip(run || gap ? { x: e.clientX, y: e.clientY, run, gap } : undefined);
          }}
          onPointerLeave={() => setTip(undefined)} onClick={(e) => {
            if (drag.current?.moved) return;
            const run = hit(e), gap = run ? undefined : hitGap(e);
            if (run) go(`/runs/${run.id}`); else if (gap) go(dueIn(gap));
          }}>
          <canvas ref={canvas} role="img" aria-label={t('Timeline of runs. The list of runs shows the same as text.')} />
        </div>
      )}
      {lanes.more > 0 && <p class="in faint small">{t('and {n} more', { n: lanes.more.toLocaleString() })}: {t('there is not enough room. Failed runs come first.')}</p>}
      <div class="in legend">
        {([['succeeded'], ['failed', 'timed_out', 'lost'], ['killed'], ['running']] as const).map((of) => <span key={of[0]}><i style={{ background: `var(--${toneOf(of[0])}-dot)` }} />{of.map((o) => t(outcomeText[o])).join(t(', '))}</span>)}
        <span>{t('Missed and skipped runs did not start: see')} <Link to="/timeline/slots">{t('Scheduled times')}</Link></span>
        {cut && <span>{t('Only the latest {n} runs are shown. Choose a shorter time range.', { n: most.toLocaleString() })}</span>}
        <span class="grow" /><Link to={`/runs${query({ from: new Date(Math.round(end - view.span)).toISOString(), to: new Date(Math.round(end)).toISOString() })}`}>{t('Show as list')}</Link>
      </div>
      {gaps.length > 0 && (
        <div class="in outages">
          <h3>{t('Outages')} <span class="count">{gaps.length}</span></h3>
          <ul>{gaps.slice().reverse().slice(0, 20).map((o) => (
            <li key={o.from}>
              <button class="plainlink mono" title={t('Show on the timeline')} onClick={() => setView({ span: Math.min(7 * 86400_000, Math.max(60_000, (o.to - o.from) * 3)), end: Math.min(now(), o.to + (o.to - o.from)) })}>{stamp(o.from)} – {day(o.from) === day(o.to) ? clock(o.to) : stamp(o.to)}</button> <b>{span(o.to - o.from)}</b>
              <OutageWords o={o} link />
            </li>
          ))}</ul>
          <p class="faint small">{t('Derived from run records: between two punctual starts, no run started on time. For the cause, see the logs of the nodes and of MySQL.')}</p>
        </div>
      )}
      {tip?.run && <div class="tip" style={{ left: Math.min(tip.x + 14, innerWidth - 240) + 'px', top: tip.y + 14 + 'px' }}><b>{tip.run!.job}</b> {t(outcomeText[outcomeOf(tip.run!)])}<br />{stamp(tip.run!.started!)} · {tip.run!.ended ? span(ms(tip.run!.ended) - ms(tip.run!.started)) : coarse(now() - ms(tip.run!.started))} · {tip.run!.node}{tip.run!.reason && <><br /><Reason run={tip.run!} /></>}</div>}
      {tip?.gap && <div class="tip" style={{ left: Math.min(tip.x + 14, innerWidth - 240) + 'px', top: tip.y + 14 + 'px' }}><b>{t('Outage')} {span(tip.gap.to - tip.gap.from)}</b><br />{stamp(tip.gap.from)} – {day(tip.gap.from) === day(tip.gap.to) ? clock(tip.gap.to) : stamp(tip.gap.to)}<br /><OutageWords o={tip.gap} /></div>}
    </Card>
  );
}

/** The runs that were due in an outage. */
const dueIn = (o: Outage, outcome?: string) => `/runs${query({ outcome, trigger: 'schedule', from: new Date(Math.floor(o.from)).toISOString(), to: new Date(Math.ceil(o.to) + 1).toISOString() })}`;
const sessionWords: Record<string, Text> = { reap: '{node} died', leave: '{node} stopped', fence: '{node} lost its lease' };

/** What an outage did, and what is known of its cause. */
function OutageWords({ o, link }: { o: Outage; link?: boolean }) {
  const part = (text: string, to: string) => (link ? <Link to={to}>{text}</Link> : <>{text}</>);
  return (
    <span class="what">
      {o.missed > 0 && <span>{part(t('{n} runs were missed', { n: o.missed.toLocaleString() }), dueIn(o, 'missed'))}</span>}
      {o.late.length > 0 && <span>{part(t('{n} started late', { n: o.late.length }), dueIn(o))}</span>}
      {[...new Map(o.nodes.map((n) => [n.name + n.action, n])).values()].slice(0, 6).map((n) => <span key={n.name + n.action}>{part(`${t(sessionWords[n.action], { node: n.name })} ${clock(n.at)}`, `/audit${query({ kind: 'session' })}`)}</span>)}
    </span>
  );
}

const minute = 60_000, hour = 60 * minute;
const seldomMost = 7 * 24 * 6; // every 10 minutes of a week

interface Heat { hours: Map<string, number>; at: Map<string, number>; minutes: number[]; herds: { at: number; n: number }[]; total: number; out: Counts }

/** What the counts of the minutes of a week come to. Hours are those of the zone that is shown: a quarter of an hour lies in one of them, whatever the zone. */
function heatOf(out: Counts): Heat {
  const begin = ms(out.from), hours = new Map<string, number>(), at = new Map<string, number>(), minutes = new Array<number>(60).fill(0);
  const all: { at: number; n: number }[] = [];
  for (let i = 0; i < out.counts.length; i += 15) {
    const s = stamp(begin + i * minute), k = s.slice(0, 13), m = +s.slice(14, 16);
    if (!at.has(k)) at.set(k, begin + (i - m) * minute);
    let sum = 0;
    for (let j = 0; j < 15; j++) {
      const n = out.counts[i + j] ?? 0;
      sum += n;
      minutes[(m + j) % 60] += n;
      if (n > 0) all.push({ at: begin + (i + j) * minute, n });
    }
    hours.set(k, (hours.get(k) ?? 0) + sum);
  }
  const usual = out.total / Math.max(1, out.counts.length);
  const herds = all.filter((x) => x.n >= Math.max(5, 4 * usual)).sort((a, b) => b.n - a.n).slice(0, 8);
  return { hours, at, minutes, herds, total: out.total, out };
}

const two = (n: number) => String(n).padStart(2, '0');
const short = (n: number) => (n > 9999 ? Math.round(n / 1000) + 'k' : n > 999 ? (n / 1000).toFixed(1) + 'k' : String(n));

/** How many due times each hour of the coming week has, at which instants many come together, and which minutes are free. */
function Week() {
  const [heat, setHeat] = useState<Heat>(), [problem, setProblem] = useState<Problem>();
  const [seldom, setSeldom] = useState(true), [again, setAgain] = useState(0);
  const [open, setOpen] = useState<{ from: number; to: number; n: number }>(), app = here.value.search.get('app') ?? '';
  const turn = useCounted(() => String(Math.floor(now() / hour)), []).value; // the week moves on
  useEffect(() => {
    const stop = new AbortController(), from = Math.floor(now() / (15 * minute)) * 15 * minute;
    countMinutes({ from, to: from + 168 * hour, most: seldom ? seldomMost : undefined, app }, stop.signal).then(
      (c) => { learnApps(c.frequent ?? []); setHeat(heatOf(c)); setProblem(undefined); },
      (err) => { if (!stop.signal.aborted) setProblem(err); });
    return () => stop.abort();
  }, [seldom, again, app, inUTC.value, turn]);
  const t0 = now(), noon = Date.parse(`${day(t0)}T12:00:00Z`);
  const dates = Array.from({ length: 7 }, (_, i) => new Date(noon + i * 86400_000).toISOString().slice(0, 10));
  const top = Math.max(1, ...(heat?.hours.values() ?? [])), least = Math.min(top, ...[...(heat?.hours.values() ?? [])].filter((n) => n > 0)), minutes = heat?.minutes ?? new Array<number>(60).fill(0), busiest = Math.max(1, ...minutes);
  const free = minutes.map((n, m) => ({ n, m })).sort((a, b) => a.n - b.n || Math.abs(a.m - 30) - Math.abs(b.m - 30)).slice(0, 6).map((x) => x.m).sort((a, b) => a - b);
  const hiddenJobs = seldom ? heat?.out.frequent_count ?? 0 : 0;
  const freeText = t('Free minutes: {list}', { list: free.map((m) => ':' + two(m)).join(' ') });
  return (
    <div class="stack">
      {problem && <ProblemBox problem={problem} again={() => setAgain(again + 1)} />}
      {heat?.out.truncated && <Notice look="warn"><p>{heat.out.uncounted ? t('Too many jobs to count. {n} jobs are not included.', { n: heat.out.uncounted.toLocaleString() }) : t('Too many jobs to show them all. Choose an app.')}</p></Notice>}
      <Card title={<>{t('Scheduled runs per hour')} {heat && <span class="count">{heat.total.toLocaleString()}</span>}</>} more={<><AppField value={app} set={(v) => { setOpen(undefined); setQuery({ app: v }); }} /><label class="check small" title={t('Jobs that run more often than every 10 minutes')}><input type="checkbox" checked={seldom} onChange={() => setSeldom(!seldom)} />{seldom && heat?.out.frequent_count ? t('Hide {n} frequent jobs', { n: heat.out.frequent_count.toLocaleString() }) : t('Hide frequent jobs')}</label></>}>
        {!heat ? !problem && <Loading rows={7} /> : (
          <div class="scroll"><div class="in"><div class="heat" role="table" aria-label={t('Scheduled runs per hour')}>
            <div role="row" style={{ display: 'contents' }}><span role="columnheader" class="h"><span class="unseen">{t('Day')}</span></span>{Array.from({ length: 24 }, (_, h) => <span key={h} role="columnheader" class="h">{h}</span>)}</div>
            {dates.map((d, i) => (
              <div key={d} role="row" style={{ display: 'contents' }}>
                <span role="rowheader" class="d">{weekday(noon + i * 86400_000, 'UTC')} {d.slice(8)}</span>
                {Array.from({ length: 24 }, (_, h) => {
                  const k = `${d} ${two(h)}`, n = heat.hours.get(k) ?? 0, at = heat.at.get(k);
                  if (at === undefined) return <span key={h} role="cell"><span class="c past" style={{ display: 'block' }} /></span>;
                  const share = n === 0 ? 0 : top === least ? 0.4 : 0.12 + 0.68 * Math.sqrt((n - least) / (top - least)), is = open?.from === at && open.to === at + hour;
                  return <span key={h} role="cell"><button class="c" aria-pressed={is} aria-label={`${d} ${h}:00, ${n}`} title={`${d} ${h}:00 · ${n.toLocaleString()}`} style={{ width: '100%', background: n ? `color-mix(in srgb, var(--heat) ${Math.round(share * 100)}%, var(--surface))` : undefined }} onClick={() => setOpen(is ? undefined : { from: at, to: at + hour, n })}>{n > 0 ? short(n) : ''}</button></span>;
                })}
              </div>
            ))}
          </div></div></div>
        )}
      </Card>
      {open && <DuesOf {...open} app={app} most={seldom ? seldomMost : undefined} close={() => setOpen(undefined)} />}
      <div class="halves">
        <Card title={t('Minutes of the hour')}>
          <div class="in stack">
            <div class="minutes" role="img" aria-label={freeText}>{minutes.map((n, m) => <i key={m} title={`:${two(m)} · ${n.toLocaleString()}`} class={free.includes(m) ? 'free' : ''} style={{ height: `${6 + (94 * n) / busiest}%` }} />)}</div>
            <p>{freeText} <span class="faint">{t('Good times for jobs that need not start on the hour.')}</span></p>
          </div>
        </Card>
        <Card title={t('Busy minutes')}>
          {heat && heat.herds.length === 0 ? <Empty icon={hiddenJobs ? 'question' : 'check'} title={heat.total === 0 && hiddenJobs ? t('Only frequent jobs are scheduled') : hiddenJobs ? t('No busy minutes among the jobs shown') : t('No busy minutes: runs are spread evenly')}>
            {hiddenJobs > 0 && <><p>{t('{n} frequent jobs are hidden, and not counted here.', { n: hiddenJobs.toLocaleString() })}</p><Button work={() => setSeldom(false)}>{t('Show them')}</Button></>}
          </Empty> : (
            <table><tbody>{heat?.herds.map((x) => (
              <tr key={x.at}><td class="mono nowrap">{weekday(x.at)} {stamp(x.at).slice(5, 16)}</td><td class="num">{x.n.toLocaleString()}</td><td class="num"><button class="plainlink" aria-expanded={open?.from === x.at && open.to === x.at + minute} onClick={() => setOpen({ from: x.at, to: x.at + minute, n: x.n })}>{t('Show jobs')}</button></td></tr>
            ))}</tbody></table>
          )}
        </Card>
      </div>
    </div>
  );
}

/** Which jobs are due in a part of the week. */
function DuesOf({ from, to, n, most, app, close }: { from: number; to: number; n: number; most?: number; app: string; close: () => void }) {
  const [list, setList] = useState<Ahead>(), [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    const stop = new AbortController();
    setList(undefined);
    setProblem(undefined);
    // The bound is that of a week, so a whole hour is asked for, of which it is six times, also when one minute is wanted.
    dueTimes({ from, to: Math.max(to, from + hour), limit: 500, most: most && most / 168, app }, stop.signal).then((a) => {
      learnApps(a.items);
      const items = a.items.filter((d) => ms(d.due) < to);
      setList({ ...a, items, next: items.length < a.items.length ? undefined : a.next });
    }, (err) => { if (!stop.signal.aborted) setProblem(err); });
    return () => stop.abort();
  }, [from, to, most, app]);
  const jobs = new Map<string, Due[]>();
  for (const d of list?.items ?? []) jobs.set(d.job_id, [...(jobs.get(d.job_id) ?? []), d]);
  return (
    <Card title={<>{weekday(from)} {stamp(from).slice(0, 16)} <span class="count">{n.toLocaleString()}</span></>} more={<Button look="quiet" icon="cross" aria-label={t('Close')} work={close} />}>
      {problem && <ProblemBox problem={problem} />}
      {!list ? !problem && <Loading rows={3} /> : (
        <table><tbody>{[...jobs.values()].slice(0, 100).map((dues) => (
          <tr key={dues[0].job_id}><td class="mono">{dues.slice(0, 8).map((d) => clock(d.due).slice(0, 5)).join(' ')}{dues.length > 8 && ' …'}</td><td><Link to={`/jobs/${dues[0].job_id}`}><bdi>{dues[0].job}</bdi></Link> {dues[0].app !== 'default' && <span class="faint small"><bdi>{dues[0].app}</bdi></span>}</td></tr>
        ))}</tbody></table>
      )}
      {(jobs.size > 100 || list?.next) && <p class="in faint small">{t('and {n} more', { n: jobs.size > 100 && !list?.next ? jobs.size - 100 : '…' })}</p>}
    </Card>
  );
}
