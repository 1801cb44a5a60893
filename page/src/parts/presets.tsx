import { useMemo } from 'preact/hooks';
import { now } from '../api';
import { t, type Text } from '../i18n';
import { day, instantOf, zoneShown } from '../time';

// The ranges that lists of runs offer, by the clock of the zone that is shown.

const texts = { hour: 'Last hour', night: 'Last night', today: 'Today', day: 'Last 24 hours', week: 'Last 7 days' } as const satisfies Record<string, Text>;
export type Preset = keyof typeof texts;
export const presets = Object.keys(texts) as Preset[];
export const presetOf = (s: string | null): Preset | undefined => presets.find((p) => p === s);
export const presetText = (p: Preset) => t(texts[p]);

const hour = 3600_000, nightBegins = '20:00', nightEnds = '08:00';

/** The range of a preset. Without an end it goes on. A night is over at eight in the morning. */
export function rangeOf(p: Preset): { from: number; to?: number } {
  const at = now(), zone = zoneShown(), today = day(at, zone);
  const yesterday = new Date(Date.parse(`${today}T12:00:00Z`) - 24 * hour).toISOString().slice(0, 10);
  const instant = (wall: string) => Date.parse(instantOf(wall, zone)!);
  switch (p) {
    case 'hour': return { from: at - hour };
    case 'today': return { from: instant(`${today} 00:00`) };
    case 'day': return { from: at - 24 * hour };
    case 'week': return { from: at - 7 * 24 * hour };
    case 'night': {
      const to = instant(`${today} ${nightEnds}`);
      return { from: instant(`${yesterday} ${nightBegins}`), to: to > at ? undefined : to };
    }
  }
}

export const isoOf = (at: number | undefined) => (at === undefined ? undefined : new Date(Math.floor(at)).toISOString());

/** The range of a preset, the same as long as the preset is: what is shown by it is not asked for again each second. */
export const usePreset = (p: Preset | undefined) => useMemo(() => (p ? rangeOf(p) : undefined), [p, zoneShown()]);

export const Presets = ({ value, set, of = presets }: { value?: Preset; set: (p: Preset | undefined) => void; of?: Preset[] }) => (
  <div class="chips" role="group" aria-label={t('Time range')}>
    {of.map((p) => <button key={p} class="chip" aria-pressed={value === p} onClick={() => set(value === p ? undefined : p)}>{presetText(p)}</button>)}
  </div>
);
