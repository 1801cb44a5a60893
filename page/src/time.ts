import { signal } from '@preact/signals';
import { now } from './api';
import { lang } from './i18n';
import { milliseconds, span, unit } from './span';

export { coarse, durationSaid, milliseconds, span } from './span';

// How times are shown. An instant has two readings: in the job's time zone and in the browser's; short texts take the
// browser's, and the title of each says both.

export const myZone = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';
/** Whether instants are shown in UTC instead of the browser's zone. */
export const inUTC = signal(localStorage.getItem('utc') === 'yes');
export const zoneShown = () => (inUTC.value ? 'UTC' : myZone);

const formats = new Map<string, Intl.DateTimeFormat>();
function format(zone: string, o: Intl.DateTimeFormatOptions, locale = lang.value === 'zh' ? 'zh-CN' : 'en-GB') {
  const key = locale + zone + JSON.stringify(o);
  let f = formats.get(key);
  if (!f) {
    try {
      f = new Intl.DateTimeFormat(locale, { timeZone: zone, hourCycle: 'h23', ...o });
    } catch { // a zone that this browser does not know
      f = new Intl.DateTimeFormat(locale, { timeZone: 'UTC', timeZoneName: 'short', hourCycle: 'h23', ...o });
    }
    formats.set(key, f);
  }
  return f;
}

function parts(ms: number, zone: string) {
  const p: Record<string, string> = {};
  for (const { type, value } of format(zone, { year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit' }, 'en-GB').formatToParts(ms)) p[type] = value;
  return p;
}

export const ms = (at: string | undefined) => (at ? Date.parse(at) : NaN);

/** 2026-11-22 07:53:35 */
export function stamp(at: string | number, zone = zoneShown()) {
  const t = typeof at === 'number' ? at : ms(at);
  if (Number.isNaN(t)) return '';
  const p = parts(t, zone);
  return `${p.year}-${p.month}-${p.day} ${p.hour}:${p.minute}:${p.second}`;
}
export const day = (at: string | number, zone = zoneShown()) => stamp(at, zone).slice(0, 10);
export const clock = (at: string | number, zone = zoneShown()) => stamp(at, zone).slice(11);

/** The shortest text that says when: the time alone today, the day as well otherwise. */
export function brief(at: string | number, zone = zoneShown()) {
  const s = stamp(at, zone);
  return s.slice(0, 10) === day(now(), zone) ? s.slice(11) : s.slice(0, 4) === day(now(), zone).slice(0, 4) ? s.slice(5, 16) : s.slice(0, 16);
}
/** Both ends of a range. The day stands at each end, or at none if all of it is today. */
export function range(from: string, to: string, zone = zoneShown()): [string, string] {
  const a = stamp(from, zone), b = stamp(to, zone), today = day(now(), zone);
  const cut = a.slice(0, 4) === today.slice(0, 4) && b.slice(0, 4) === today.slice(0, 4) ? 5 : 0; // without the year

  if (a.slice(0, 10) !== b.slice(0, 10)) return [a.slice(cut, 16), b.slice(cut, 16)];
  return [a.slice(0, 10) === today ? a.slice(11) : a.slice(cut), b.slice(11)];
}
export const weekday = (at: string | number, zone = zoneShown()) => format(zone, { weekday: 'short' }).format(typeof at === 'number' ? at : ms(at));

/** +01:00 of a zone at an instant. */
export function offsetOf(at: number, zone: string) {
  const p = parts(at, zone);
  const wall = Date.UTC(+p.year, +p.month - 1, +p.day, +p.hour, +p.minute, +p.second);
  const min = Math.round((wall - Math.floor(at / 1000) * 1000) / 60000);
  return (min < 0 ? '−' : '+') + String(Math.floor(Math.abs(min) / 60)).padStart(2, '0') + ':' + String(Math.abs(min) % 60).padStart(2, '0');
}

/** The instant at which a wall clock of a zone shows YYYY-MM-DD HH:MM[:SS]. In a gap: that of the clock before it. */
export function instantOf(wall: string, zone = zoneShown()): string | null {
  const m = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d))?$/.exec(wall.trim());
  if (!m) return null;
  const want = Date.UTC(+m[1], +m[2] - 1, +m[3], +m[4], +m[5], +(m[6] ?? 0));
  let t = want;
  for (let i = 0; i < 3; i++) {
    const p = parts(t, zone);
    t += want - Date.UTC(+p.year, +p.month - 1, +p.day, +p.hour, +p.minute, +p.second);
  }
  return new Date(t).toISOString().replace('.000Z', 'Z');
}

/** Instants in a text of the server, as the page shows them. */
export const inZone = (text: string, zone = zoneShown()) =>
  text.replace(/\b(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d+)?)(?:Z| UTC\b)/g, (_, day, time) => stamp(`${day}T${time}Z`, zone));

export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  let n = bytes / 1024, i = 0;
  while (n >= 1024 && i < 4) { n /= 1024; i++; }
  return `${unit(n, 1)} ${['KiB', 'MiB', 'GiB', 'TiB', 'PiB'][i]}`;
}

/** Durations with fractions in a text of the server, as the page shows them. */
export const inSpans = (text: string) => text.replace(/\b(?:\d+h)?(?:\d+m)?\d+\.\d+m?s\b/g, (d) => span(milliseconds(d)!));
