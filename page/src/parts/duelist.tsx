import { now } from '../api';
import { ms, offsetOf, stamp, weekday, zoneShown } from '../time';
import type { DueTime } from '../types';
import { Until } from './basic';
import { markText } from './dues';

// The next due times of a definition, as a list.

const whenFields = ['schedule', 'schedules', 'every', 'at', 'delay', 'after', 'manual', 'timezone', 'start', 'end', 'max_fires', 'jitter', 'calendars', 'on_closed', 'weeks', 'handler', 'selector', 'app', 'name'];

/** The fields that a preview takes. */
export const whenOf = (spec: Record<string, unknown>) => Object.fromEntries(whenFields.filter((k) => spec[k] !== undefined).map((k) => [k, spec[k]]));

export function Dues({ list, zone }: { list: DueTime[]; zone?: string }) {
  const mine = zoneShown(), z = zone ?? mine;
  return (
    <ol class="dues">
      {list.map((d) => (
        <li key={d.due}>
          <span class="mono nowrap" title={mine !== z ? `${stamp(d.due, mine)} ${mine}` : undefined}>{weekday(d.due, z)} {stamp(d.due, z).slice(stamp(now(), z).slice(0, 4) === stamp(d.due, z).slice(0, 4) ? 5 : 0)}</span>
          <span class="faint small">{offsetOf(ms(d.due), z)}</span>
          {d.mark && <span class="tag warn">{markText(d, z)}</span>}
          <span class="until"><Until at={d.due} zone={zone} /></span>
        </li>
      ))}
    </ol>
  );
}
