import { now } from '../api';
import { t, type Text } from '../i18n';
import { day, instantOf, ms, stamp } from '../time';
import { Field } from './basic';
import type { Message as Sentence } from '../types';

// Ranges in the past to choose from, by the clock of a zone, and fields for their ends.

export type Span = { from: string; to: string };
const iso = (at: number) => new Date(Math.floor(at)).toISOString();
const hour = 3600_000;

/** The instant of a wall clock some days before today. */
function wall(daysAgo: number, time: string, zone: string): number {
  const noon = Date.parse(`${day(now(), zone)}T12:00:00Z`) - daysAgo * 24 * hour;
  return ms(instantOf(`${new Date(noon).toISOString().slice(0, 10)} ${time}`, zone)!);
}

const minute = (at: number) => Math.floor(at / 60_000) * 60_000; // fields without seconds are easier to read
const last = (hours: number) => (): Span => ({ from: iso(minute(now() - hours * hour)), to: iso(minute(now())) });

export const pastRanges: { id: string; text: Text; of: (zone: string) => Span }[] = [
  { id: 'hour', text: 'Last hour', of: last(1) },
  { id: 'day', text: 'Last 24 hours', of: last(24) },
  { id: 'night', text: 'Last night', of: (zone) => ({ from: iso(wall(1, '20:00', zone)), to: iso(Math.min(minute(now()), wall(0, '08:00', zone))) }) },
  { id: 'today', text: 'Today', of: (zone) => ({ from: iso(wall(0, '00:00', zone)), to: iso(minute(now())) }) },
  { id: 'yesterday', text: 'Yesterday', of: (zone) => ({ from: iso(wall(1, '00:00', zone)), to: iso(wall(0, '00:00', zone) - 1000) }) },
  { id: 'week', text: 'Last 7 days', of: last(7 * 24) },
];
export const pastRange = (id: string, zone: string) => pastRanges.find((r) => r.id === id)?.of(zone);

/** Buttons with ranges in the past. */
export const RangeChips = ({ value, set, of = pastRanges }: { value?: string; set: (id: string) => void; of?: typeof pastRanges }) => (
  <div class="chips" role="group" aria-label={t('Time range')}>
    {of.map((r) => <button key={r.id} type="button" class="chip" aria-pressed={value === r.id} onClick={() => set(r.id)}>{t(r.text)}</button>)}
  </div>
);

/** A date and time in a zone, with the browser's picker. The value is an instant, or empty. */
export function Moment({ id, label, at, zone, set, error }: { id: string; label: string; at: string; zone: string; set: (at: string) => void; error?: string | Sentence }) {
  const shown = at && stamp(at, zone).replace(' ', 'T');
  return (
    <Field id={id} label={label} error={error}>
      <input id={id} type="datetime-local" step={shown.endsWith(':00') ? 60 : 1} value={shown.endsWith(':00') ? shown.slice(0, 16) : shown}
        onInput={(e) => { if (e.currentTarget.value) set(instantOf(e.currentTarget.value, zone) ?? ''); }} />
    </Field>
  );
}
