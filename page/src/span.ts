import { lang } from './lang';

// How lengths of time are shown.

export const unit = (n: number, digits: number) => String(+n.toFixed(digits));
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

/** A duration as the server writes it (1h30m), in the words of the language; another text as it is. */
export const durationSaid = (text: string) => { const is = lang.value === 'en' ? undefined : milliseconds(text); return is === undefined ? text : span(is); };
