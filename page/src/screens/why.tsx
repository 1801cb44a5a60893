import { get, now, query } from '../api';
import { explained, t } from '../i18n';
import { useGet } from '../live';
import { Button, Card, Empty, Loading, Notice, ProblemBox, Range, When } from '../parts/basic';
import { Icon } from '../parts/icon';
import { everyRange, Moment, pastRange, RangeChips } from '../parts/ranges';
import { RunTable } from '../parts/runtable';
import { SlotBadge, slotsPath, slotText, slotTone, type OfJob } from '../parts/slots';
import { here, Link, setQuery, useOneOf } from '../router';
import { inSpans, inZone, ms, stamp, zoneShown } from '../time';
import type { Explanation, Job, JobSlots, Slot, SlotBucket } from '../types';

/** Why a job ran, or did not run, at some time: its recent due times to click on, and the answer for one of them. */
export function Why({ job: j }: { job: Job }) {
  const zone = j.timezone ?? zoneShown(), q = here.value.search;
  const asked = q.get('at') ?? '', preset = useOneOf('range', everyRange) || (q.get('from') ? '' : 'week');
  const between: Between = () => pastRange(preset, zone) ?? { from: q.get('from') ?? '', to: q.get('to') ?? '' };
  const choose = (id: string) => setQuery({ range: id, from: undefined, to: undefined, at: undefined });

  return (
    <div class="stack">
      {asked && <Answer job={j} at={asked} zone={zone} />}
      <Card title={t('Why did it run, or not run, at a given time?')} more={<RangeChips value={preset} set={choose} />}>
        <div class="in row">
          <span class="faint grow">{t('Click a scheduled time to see why it ran, or why it did not.')} {zone !== zoneShown() && t('Times are in {zone}.', { zone })}</span>
          <Moment id="why-at" label={t('Another time')} at={asked} zone={zone} set={(at) => setQuery({ at })} />
        </div>
        <SlotList job={j} name={preset || `${q.get('from')} ${q.get('to')}`} between={between} zone={zone} asked={asked} />
      </Card>
    </div>
  );
}

const words: Partial<Record<Explanation['cause'], undefined | 'good' | 'plain'>> = { succeeded: 'good', not_due: 'plain', ahead: 'plain', executing: 'plain' };

function Answer({ job: j, at, zone }: { job: Job; at: string; zone: string }) {
  const { data: e, problem, loading } = useGet<Explanation>(`/api/v1/jobs/${j.id}/explain${query({ at })}`, { every: 10_000, on: ['run'], job: j.id });
  if (problem) return <ProblemBox problem={problem} />;
  if (loading || !e) return <Loading rows={2} />;

  const look = words[e.cause], said = explained(e.cause, e.answer);
  const step = (to: string) => setQuery({ at: to });
  return (
    <Card title={<>{stamp(e.due_time ?? e.at, zone)} <span class="faint">{zone}</span></>} more={<>
      {e.before && <Button icon="left" work={() => step(e.before!.due)} title={stamp(e.before.due, zone)}>{t('Previous')}</Button>}
      {e.after && <Button work={() => step(e.after!.due)} title={stamp(e.after.due, zone)}>{t('Next')}<Icon name="right" /></Button>}
    </>}>
      <div class="in stack">
        <Notice look={look === 'good' ? 'good' : look === 'plain' ? undefined : 'warn'} icon="question">
          <b>{inSpans(inZone(said, zone))}</b>{said !== e.answer && <p class="faint small" lang="en">{inSpans(inZone(e.answer, zone))}</p>}
          <div class="row">
            {e.calendar && <Link to={`/settings/calendars/${encodeURIComponent(e.calendar.name)}`}>{t('Calendar')}: {e.calendar.name}</Link>}
            {e.calendar?.moved_to && <Button icon="right" work={() => step(e.calendar!.moved_to!)}>{t('Moved to {time}', { time: stamp(e.calendar.moved_to, zone) })}</Button>}
            {e.waiting?.group && <Link to={`/jobs?group=${encodeURIComponent(e.waiting.group)}`}>{t('Group')}: {e.waiting.group}</Link>}
            {(e.changed || e.created) && <Link to={`/jobs/${j.id}/versions`}>{t('Versions')}</Link>}
          </div>
        </Notice>
        {e.runs && e.runs.length > 0 && <RunTable runs={e.runs} zone={j.timezone} />}
      </div>
    </Card>
  );
}

const mostSlots = 300;

/** The due times of a range. Some ranges end now, so each question has its own. */
type Between = () => { from: string; to: string };

function SlotList({ job: j, name, between, zone, asked }: { job: Job; name: string; between: Between; zone: string; asked: string }) {
  const read = async (_: string, stop: AbortSignal) => {
    const { from, to } = between(), live = now() - ms(to) < 60_000;
    return { data: await get<OfJob>(slotsPath(j.id, from, live ? new Date(now()).toISOString() : to, mostSlots), stop), etag: '' };
  };
  const { data, problem, loading, reload } = useGet<OfJob>(`${name} ${zone}`, { every: 30_000, on: ['run'], job: j.id, always: true, read });
  if (problem) return <ProblemBox problem={problem} again={reload} />;
  if (loading) return <Loading rows={6} />;

  const of: JobSlots | undefined = data?.items[0];
  if (of?.uncounted) return <Empty icon="question" title={t('Too many scheduled times. Choose a shorter range.')} />;
  if (!of?.slots?.length && !of?.buckets?.length) return <Empty icon="question" title={t('No scheduled times in this range. Choose another one.')} />;
  return (
    <>
      {of.holes > 0 && <p class="in warn-text">{t('{n} scheduled times have no record', { n: of.holes.toLocaleString() })}</p>}
      <ol class="slots">
        {of.slots?.slice().reverse().map((s) => <SlotRow key={s.due} slot={s} zone={zone} current={ms(s.due) === ms(asked)} />)}
        {of.buckets?.slice().reverse().map((b) => <BucketRow key={b.from} bucket={b} zone={zone} />)}
      </ol>
    </>
  );
}

const SlotRow = ({ slot: s, zone, current }: { slot: Slot; zone: string; current: boolean }) => (
  <li>
    <button class={`slot ${slotTone(s.state)}`} aria-current={current ? 'true' : undefined} onClick={() => { setQuery({ at: s.due }); scrollTo({ top: 0 }); }}>
      <span class="mono"><When at={s.due} in={zone} long /></span><SlotBadge state={s.state} />
      {s.again && <span class="faint small">{t('rerun: {result}', { result: slotText(s.again) })}</span>}
      <span class="faint small grow num">{s.node}</span>
    </button>
  </li>
);

/** A part of the range of a job with many due times. A click looks at that part alone. */
function BucketRow({ bucket: b, zone }: { bucket: SlotBucket; zone: string }) {
  const states = Object.entries(b.states) as [Slot['state'], number][];
  return (
    <li>
      <button class={`slot ${b.worst ? 'bad' : ''}`} onClick={() => setQuery({ range: undefined, from: b.from, to: b.to })}>
        <span class="mono"><Range from={b.from} to={b.to} zone={zone} /></span>
        <span class="meter">{states.map(([s, n]) => <i key={s} class={slotTone(s)} style={{ width: `${(100 * n) / b.total}%` }} />)}</span>
        <span class="faint small grow num">{states.map(([s, n]) => `${n.toLocaleString()} ${slotText(s)}`).join(' · ')}</span>
      </button>
    </li>
  );
}
