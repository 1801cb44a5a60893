import { useMemo } from 'preact/hooks';
import { now } from '../api';
import { t } from '../i18n';
import { ms, zoneShown } from '../time';
import { pastRange, pastRanges } from './ranges';

// The ranges that lists of runs offer, by the clock of the zone that is shown.

const offered = ['hour', 'night', 'today', 'day', 'week'];
export const presetOf = (id: string | null) => (id && offered.includes(id) ? id : undefined);
export const presetText = (id: string) => t(pastRanges.find((r) => r.id === id)!.text);

/** A range by its id. Without an end it goes on. */
export function rangeOf(id: string): { from: number; to?: number } {
  const r = pastRange(id, zoneShown())!;
  return { from: ms(r.from), to: ms(r.to) < now() - 1000 ? ms(r.to) : undefined };
}

export const isoOf = (at: number | undefined) => (at === undefined ? undefined : new Date(Math.floor(at)).toISOString());

/** A range that stays the same as long as its id does: what is shown by it is not asked for again each second. */
export const usePreset = (id: string | undefined) => useMemo(() => (id ? rangeOf(id) : undefined), [id, zoneShown()]);

/** Buttons with the ranges. A second press takes one away. */
export const Presets = ({ value, set, of = offered }: { value?: string; set: (id: string | undefined) => void; of?: string[] }) => (
  <div class="chips" role="group" aria-label={t('Time range')}>
    {of.map((id) => <button key={id} class="chip" aria-pressed={value === id} onClick={() => set(value === id ? undefined : id)}>{presetText(id)}</button>)}
  </div>
);
