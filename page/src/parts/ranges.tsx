import { useMemo } from 'preact/hooks';
import { now } from '../api';
import { t, type Text } from '../i18n';
import { day, instantOf, ms, stamp, zoneShown } from '../time';
import { Field, useCounted } from './basic';
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

/** Without an end it goes on. */
export interface Past { from: number; to?: number }
const ago = (hours: number) => (): Past => ({ from: now() - hours * hour });
const ranges: { id: string; text: Text; of: (zone: string) => Past }[] = [
  { id: 'hour', text: 'Last hour', of: ago(1) },
  { id: 'day', text: 'Last 24 hours', of: ago(24) },
  { id: 'night', text: 'Last night', of: (zone) => { const to = wall(0, '08:00', zone); return { from: wall(1, '20:00', zone), to: to > now() ? undefined : to }; } },
  { id: 'today', text: 'Today', of: (zone) => ({ from: wall(0, '00:00', zone) }) },
  { id: 'yesterday', text: 'Yesterday', of: (zone) => ({ from: wall(1, '00:00', zone), to: wall(0, '00:00', zone) - 1000 }) },
  { id: 'week', text: 'Last 7 days', of: ago(7 * 24) },
];
const find = (id: string | null | undefined) => ranges.find((r) => r.id === id);
export const everyRange = ranges.map((r) => r.id);

/** The ranges that lists of runs offer. */
export const listRanges = ['hour', 'night', 'today', 'day', 'week'];
export const presetText = (id: string) => t(find(id)!.text);
export const rangeOf = (id: string, zone = zoneShown()): Past => find(id)!.of(zone);
export const isoOf = (at: number | undefined) => (at === undefined ? undefined : iso(at));

/** A range for fields, which are easier to read without seconds. */
export function pastRange(id: string, zone: string): Span | undefined {
  const minute = (at: number) => Math.floor(at / 60_000) * 60_000;
  const r = find(id)?.of(zone);
  return r && { from: iso(minute(r.from)), to: iso(r.to ?? minute(now())) };
}

/** A range that follows the clock in steps: a list that begins elsewhere is read anew. */
export function usePreset(id: string | undefined): Past | undefined {
  const step = id === 'hour' ? hour / 12 : hour;
  const turn = useCounted(() => String(Math.floor(now() / step)), [step]).value;
  return useMemo(() => (id ? rangeOf(id) : undefined), [id, zoneShown(), turn]);
}

/** Buttons with ranges in the past. With `clear`, a second press takes one away. */
export const RangeChips = ({ value, set, clear, of = everyRange }: { value?: string; set: (id: string) => void; clear?: () => void; of?: string[] }) => (
  <div class="chips" role="group" aria-label={t('Time range')}>
    {of.map((id) => <button key={id} type="button" class="chip" aria-pressed={value === id} onClick={() => (clear && value === id ? clear() : set(id))}>{presetText(id)}</button>)}
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
