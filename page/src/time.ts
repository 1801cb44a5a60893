import { signal } from '@preact/signals';
import { now } from './api';
import { lang } from './i18n';

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

const unit = (n: number, digits: number) => String(+n.toFixed(digits));
const units = { en: { ms: 'ms', s: 's', m: 'm', h: 'h', d: 'd', y: 'y' }, zh: { ms: '毫秒', s: '秒', m: '分', h: '小时', d: '天', y: '年' } };

/** 3.2 ms, 5.1 s, 4 m 5 s, 2 h 5 m, 3 d 4 h */
export function span(milliseconds: number): string {
  const a = Math.abs(milliseconds), u = units[lang.value];
  if (a < 1) return a === 0 ? `0 ${u.ms}` : `${unit(a, 2)} ${u.ms}`;
  if (a < 10) return `${unit(a, 1)} ${u.ms}`;
  if (a < 1000) return `${Math.round(a)} ${u.ms}`;
  if (a < 60_000) return `${unit(a / 1000, a < 10_000 ? 1 : 0)} ${u.s}`;
  return coarse(a);
}

/** The same in whole seconds and longer units: for what is counted down. */
export function coarse(milliseconds: number): string {
  const s = Math.max(0, Math.round(milliseconds / 1000)), u = units[lang.value];
  if (s < 60) return `${s} ${u.s}`;
  const [d, h, m] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  if (d > 730) return `${Math.round(d / 365.25)} ${u.y}`;
  if (d > 0) return d > 9 || h === 0 ? `${d} ${u.d}` : `${d} ${u.d} ${h} ${u.h}`;
  if (h > 0) return m === 0 ? `${h} ${u.h}` : `${h} ${u.h} ${m} ${u.m}`;
  return s % 60 === 0 ? `${m} ${u.m}` : `${m} ${u.m} ${s % 60} ${u.s}`;
}

const lengths: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3600_000 };
/** The milliseconds of a duration as the server writes it (2160h, 1h30m); undefined if it is none. */
export function milliseconds(duration: string): number | undefined {
  if (!/^(\d+(\.\d+)?(ms|s|m|h))+$/.test(duration)) return undefined;
  let sum = 0;
  for (const [, n, unit] of duration.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)) sum += Number(n) * lengths[unit];
  return sum;
}

export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  let n = bytes / 1024, i = 0;
  while (n >= 1024 && i < 4) { n /= 1024; i++; }
  return `${unit(n, 1)} ${['KiB', 'MiB', 'GiB', 'TiB', 'PiB'][i]}`;
}

/** Durations with fractions in a text of the server, as the page shows them. */
export const inSpans = (text: string) => text.replace(/\b(?:\d+h)?(?:\d+m)?\d+\.\d+m?s\b/g, (d) => span(milliseconds(d)!));
