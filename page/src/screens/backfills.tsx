import { useEffect, useMemo, useState } from 'preact/hooks';
import { get, may, now, onceKey, post, Problem, query } from '../api';
import { t, type Text } from '../i18n';
import { useGet, usePages } from '../live';
import { ask, Badge, Button, Card, closeDialog, closing, Dialog, Empty, Field, Loading, outcomes, outcomeText, ProblemBox, Range, say, show, toneOf, When, type Tone } from '../parts/basic';
import { Moment, pastRange, RangeChips } from '../parts/ranges';
import { hasSucceeded, SlotBadge, slotsPath, type OfJob } from '../parts/slots';
import { ParamFields, paramsGiven, takesParams, usualParams } from '../parts/params';
import { go, here, Link, setQuery } from '../router';
import { ms, stamp, zoneShown } from '../time';
import type { Backfill, BackfillDue, DueTime, Job, Outcome, Page, Slot } from '../types';

// Backfills of a job: what became of each, and the dialog that starts one.

const healthText: Record<Backfill['health'], Text> = { running: 'running', failing: 'running, with failures', succeeded: 'done', failed: 'done, with failures', cancelled: 'cancelled', unknown: 'done' };
const healthTone: Record<Backfill['health'], Tone> = { running: 'busy', failing: 'bad', succeeded: 'good', failed: 'bad', cancelled: 'mute', unknown: 'mute' };

export function Backfills({ job: j }: { job: Job }) {
  const list = useGet<Page<Backfill>>(`/api/v1/backfills?job_id=${j.id}&limit=50`, { every: 2000, on: ['backfill', 'run'], job: j.id });
  const items = list.data?.items ?? [];
  useEffect(() => { // a link from a record names its range
    const from = here.value.search.get('from'), to = here.value.search.get('to');
    if (!from || !to || !may('operator', j.app)) return;
    setQuery({ from: undefined, to: undefined });
    openBackfill(j, [from, to]);
  }, []);

  return (
    <Card title={t('Backfills')} more={may('operator', j.app) && !j.at && <Button icon="history" work={() => openBackfill(j)}>{t('Backfill')}</Button>}>
      {list.problem && <ProblemBox problem={list.problem} again={list.reload} />}
      {list.loading ? <Loading /> : items.length === 0 && !list.problem ? (
        <Empty icon="history" title={t('No backfills yet')}><p>{t('A backfill runs missed or past times again. Each run gets its original scheduled time.')}</p></Empty>
      ) : items.map((b, i) => <Item key={b.id} job={j} backfill={b} first={i === 0} reload={list.reload} />)}
    </Card>
  );
}

function Item({ job: j, backfill: b, first, reload }: { job: Job; backfill: Backfill; first: boolean; reload: () => Promise<void> }) {
  const [open, setOpen] = useState(first);
  const todo = Math.max(1, b.total - b.left_out);
  return (
    <section class="in" style={{ borderTop: first ? undefined : '1px solid var(--line)' }}>
      <div class="row">
        <Badge tone={healthTone[b.health]}>{t(healthText[b.health])}</Badge>
        <span><Range from={b.from} to={b.to} zone={j.timezone} />{j.timezone && j.timezone !== zoneShown() && <span class="faint small"> {j.timezone}</span>}</span>
        <span class="faint">{t('{n} of {all} finished', { n: b.ended.toLocaleString(), all: (b.total - b.left_out).toLocaleString() })}</span>
        <span class="grow" />
        <Button look="quiet" icon="down" aria-expanded={open} work={() => setOpen(!open)}>{t('Scheduled times')}</Button>
        {b.state === 'running' && may('operator', j.app) && <Button work={() => cancelBackfill(j, b, reload)}>{t('Cancel')}</Button>}
      </div>
      <div class="meter" style={{ margin: '8px 0' }}>{outcomes.map((o) => b.outcomes[o] > 0 && <i key={o} class={toneOf(o)} style={{ width: `${(100 * b.outcomes[o]) / todo}%` }} />)}</div>
      <p class="small faint">{Object.entries(b.outcomes).map(([o, n]) => `${n} ${t(outcomeText[o as Outcome])}`).join(' · ')}{b.left_out > 0 && ` · ${t('{n} skipped: already successful', { n: b.left_out })}`}</p>
      {open && <BackfillDues job={j} backfill={b} />}
    </section>
  );
}

type Other = Exclude<BackfillDue['state'], Outcome | 'running'>;
const stateText: Record<Other, Text> = { waiting: 'waiting', left_out: 'skipped: already successful', planned: 'planned', cancelled: 'cancelled', no_record: 'no record' };

/** The due times of a backfill, with what became of each. */
function BackfillDues({ job: j, backfill: b }: { job: Job; backfill: Backfill }) {
  const [failed, setFailed] = useState(false);
  const path = `/api/v1/backfills/${b.id}/dues${query({ state: failed ? 'failed' : '', limit: 50 })}`;
  const { items, problem, loading, more } = usePages<BackfillDue>(path, (d) => d.due, { every: 3000, on: ['run', 'backfill'], job: j.id });
  const badge = (d: BackfillDue) => (d.state in stateText
    ? <Badge tone={d.state === 'waiting' ? 'warn' : 'mute'}>{t(stateText[d.state as Other])}</Badge> : <SlotBadge state={d.state as Slot['state']} />);

  return (
    <div class="stack">
      {b.failed > 0 && <label class="check small"><input type="checkbox" checked={failed} onChange={() => setFailed(!failed)} />{t('Only those that did not succeed ({n})', { n: b.failed })}</label>}
      {problem && <ProblemBox problem={problem} />}
      {loading ? <Loading rows={3} /> : (
        <ol class="slots" aria-label={t('Scheduled times')}>{items.map((d) => {
          const row = <><span class="mono"><When at={d.due} in={j.timezone} long /></span>{badge(d)}<span class="faint small grow num">{d.run?.node}</span></>;
          return <li key={d.due}>{d.run ? <Link class="slot" to={`/runs/${d.run.id}`}>{row}</Link> : <span class="slot">{row}</span>}</li>;
        })}</ol>
      )}
      {more && <div class="more-row"><Button work={more}>{t('Show more')}</Button></div>}
    </div>
  );
}

const cancelBackfill = (j: Job, b: Backfill, done: () => Promise<void>, key = onceKey()) => ask({
  title: t('Cancel this backfill of {job}?', { job: j.name }), button: t('Cancel backfill'), danger: true, text: <p>{t('Its remaining runs will not start. Runs in progress finish.')}</p>,
  work: async () => { await post(`/api/v1/backfills/${b.id}/cancel`, {}, key); await done(); },
});

export const openBackfill = (j: Job, range?: [from: string, to: string]) => show(() => <BackfillDialog job={j} range={range} />);

const mostListed = 1000; // due times that are listed before a backfill starts

interface Planned { due: string; was?: Slot }

/** The due times of a range, with what became of them before. Without the latter where the range is too long for that. */
async function plannedIn(j: Job, from: string, to: string, stop: AbortSignal): Promise<Planned[]> {
  const after = new Date(ms(from) - 1).toISOString(), before = new Date(ms(to) + 1).toISOString();
  const [next, slots] = await Promise.all([
    get<Page<DueTime>>(`/api/v1/jobs/${j.id}/next${query({ n: mostListed, from: after })}`, stop),
    get<OfJob>(slotsPath(j.id, from, before, mostListed), stop).catch(() => undefined),
  ]);
  const was = new Map(slots?.items[0]?.slots?.map((s) => [ms(s.due), s]));
  return next.items.filter((d) => ms(d.due) <= ms(to)).map((d) => ({ due: d.due, was: was.get(ms(d.due)) }));
}

function BackfillDialog({ job: j, range }: { job: Job; range?: [from: string, to: string] }) {
  const zone = j.timezone ?? zoneShown(), start = pastRange('day', zone)!;
  const [preset, setPreset] = useState(range ? '' : 'day'), [from, setFrom] = useState(range?.[0] ?? start.from), [to, setTo] = useState(range?.[1] ?? start.to);
  const [parallel, setParallel] = useState('1'), [missing, setMissing] = useState(true);
  const [typed, setTyped] = useState(() => usualParams(j)), params = paramsGiven(j, typed);
  const [problem, setProblem] = useState<Problem>(), [planned, setPlanned] = useState<Planned[]>();
  const key = useMemo(onceKey, [from, to, parallel, missing, JSON.stringify(params)]); // a second press means the same backfill
  const error = (f: string) => problem?.errors.find((e) => e.field === f);
  const backwards = ms(from) > ms(to), ahead = ms(to) > now() + 60_000;

  useEffect(() => {
    setPlanned(undefined);
    setProblem(undefined);
    if (backwards) return;
    const stop = new AbortController();
    const timer = setTimeout(() => plannedIn(j, from, to, stop.signal).then(setPlanned, (err) => { if (!stop.signal.aborted && err instanceof Problem) setProblem(err); }), 150);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [from, to]);

  const choose = (id: string) => { const r = pastRange(id, zone)!; setPreset(id); setFrom(r.from); setTo(r.to); };
  const work = async () => {
    const close = closing();
    setProblem(undefined);
    try {
      await post(`/api/v1/jobs/${j.id}/backfill`, { from, to, parallel: Number(parallel), missing, ...(Object.keys(params).length > 0 && { params }) }, key);
      close();
      say(t('Backfill started'));
      go(`/jobs/${j.id}/backfills`);
    } catch (err) { if (err instanceof Problem) setProblem(err); else throw err; }
  };
  const runs = planned?.filter((p) => !missing || !p.was || !hasSucceeded(p.was)), shown = problem?.errors.every((e) => !['from', 'to', 'parallel'].includes(e.field) && !e.field.startsWith('params.'));

  return (
    <Dialog title={t('Backfill {job}', { job: j.name })} close={closeDialog}>
      <div class="body">
        <p class="faint">{t('Run missed or past times again. Each run gets its original scheduled time.')}</p>
        <RangeChips value={preset} set={choose} />
        <div class="fields moments">
          <Moment id="from" label={t('From')} at={from} zone={zone} set={(at) => { setFrom(at); setPreset(''); }} error={error('from')} />
          <Moment id="to" label={t('To')} at={to} zone={zone} set={(at) => { setTo(at); setPreset(''); }} error={error('to') ?? (backwards ? t('The end is before the beginning.') : ahead ? t('The end is in the future.') : undefined)} />
          <Field id="parallel" label={t('Parallel runs')} error={error('parallel')}><input id="parallel" type="number" min={1} max={100} value={parallel} onInput={(e) => setParallel(e.currentTarget.value)} /></Field>
        </div>
        <p class="faint small">{t('Times are in {zone}.', { zone })}</p>
        <label class="check"><input type="checkbox" checked={missing} onChange={() => setMissing(!missing)} />{t('Skip successful ones')}</label>
        {takesParams(j) && <ParamFields job={j} typed={typed} set={setTyped} error={error} />}
        {planned && runs ? <PlannedList all={planned} runs={runs} zone={zone} /> : !backwards && !problem && <Loading rows={2} />}
        {problem && shown && <ProblemBox problem={problem} />}
      </div>
      <footer><Button work={closeDialog}>{t('Cancel')}</Button><Button look="primary" disabled={backwards || !runs?.length} work={work}>{t('Start backfill')}</Button></footer>
    </Dialog>
  );
}

/** The due times that would run. */
function PlannedList({ all, runs, zone }: { all: Planned[]; runs: Planned[]; zone: string }) {
  const count = all.length >= mostListed ? `${all.length.toLocaleString()}+` : runs.length.toLocaleString();
  if (all.length === 0) return <p><b>{t('No scheduled times in this range. Choose another one.')}</b></p>;
  if (runs.length === 0) return <p><b>{t('All {n} scheduled times in this range have succeeded.', { n: all.length })}</b></p>;
  return (
    <>
      <p><b>{t('{n} scheduled times will run.', { n: count })}</b>{all.length > runs.length && <span class="faint"> {t('{n} skipped: already successful', { n: all.length - runs.length })}</span>}</p>
      <ol class="slots short" aria-label={t('Scheduled times')} tabIndex={0}>
        {runs.slice(0, 200).map((p) => <li key={p.due}><span class="slot"><span class="mono">{stamp(p.due, zone)}</span>{p.was && <SlotBadge state={p.was.state} />}</span></li>)}
        {runs.length > 200 && <li class="slot faint">{t('and {n} more', { n: runs.length - 200 })}</li>}
      </ol>
    </>
  );
}
