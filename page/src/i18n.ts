import { lang, type Lang } from './lang';
import { durationSaid } from './span';
import type { Message as Sentence } from './types';
import type { Text } from './zh';

export { lang, type Lang } from './lang';
export type { Text } from './zh';

const wanted = (): Lang => {
  const kept = localStorage.getItem('lang');
  if (kept === 'en' || kept === 'zh') return kept;
  return navigator.languages.find((l) => /^(en|zh)\b/i.test(l))?.slice(0, 2).toLowerCase() === 'zh' ? 'zh' : 'en';
};

let words: Record<string, string> | null = null;
let server: typeof import('./zh-server') | null = null;

export async function speak(l: Lang) {
  if (l === 'zh' && !words) [words, server] = await Promise.all([import('./zh').then((m) => m.zh), import('./zh-server')]);
  document.documentElement.lang = l === 'zh' ? 'zh-CN' : 'en';
  lang.value = l;
}
export async function choose(l: Lang) {
  localStorage.setItem('lang', l);
  await speak(l);
}
export const begin = () => speak(wanted());

/** Texts in the singular, by the plural. */
const ones: Partial<Record<Text, string>> = {
  '{n} jobs': '1 job',
  '{n} jobs are failing': '1 job is failing',
  '{n} active alerts': '1 active alert',
  '{n} nodes gone': '1 node gone',
  '{n} runs lost': '1 run lost',
  '{n} messages unsent': '1 message unsent',
  'Without {n} jobs that run more often than hourly.': 'Without 1 job that runs more often than hourly.',
  '{n} days': '1 day',
  '{n} days changed': '1 day changed',
  'It applies to runs that have not started, of all {n} jobs with this calendar.': 'It applies to runs that have not started, of the one job with this calendar.',
  '{n} days off, {m} make-up workdays in the file': '1 day off, {m} make-up workdays in the file',
  '{n} other events are left out': '1 other event is left out',
  'Run {n} jobs now?': 'Run 1 job now?',
  'Resume {n} jobs?': 'Resume 1 job?',
  'Done for {n} jobs': 'Done for 1 job',
  'Done for {n} jobs; {m} refused': 'Done for 1 job; {m} refused',
  '{n} apps are paused': '1 app is paused',
  '{n} fields': '1 field',
  '{n} fields are invalid': '1 field is invalid',
  '… {size}, {n} lines left out …': '… {size}, 1 line left out …',
  'Showing the last {n} lines.': 'Showing the last line.',
  '{n} messages could not be sent.': '1 message could not be sent.',
  '{n} failed attempts': '1 failed attempt',
  '{n} events were dropped because there were too many.': '1 event was dropped because there were too many.',
  'A template failed {n} times, so the default text was sent.': 'A template failed once, so the default text was sent.',
  '{n} runs of one job': '1 run',
  '{n} runs of {jobs} jobs': '1 run of {jobs} jobs',
  '{n} values above {top} are drawn at the top.': '1 value above {top} is drawn at the top.',
  '{n} runs started again': '1 run started again',
  '{n} scheduled times will run again.': '1 scheduled time will run again.',
  '{n} scheduled times will run.': '1 scheduled time will run.',
  'All {n} scheduled times in this range have succeeded.': 'The only scheduled time in this range has succeeded.',
  '{n} scheduled times have no record': '1 scheduled time has no record',
  'Only the latest {n} scheduled times are kept': 'Only the latest scheduled time is kept',
  '{n} runs were missed': '1 run was missed',
  'Hide {n} frequent jobs': 'Hide 1 frequent job',
  '{n} frequent jobs': '1 frequent job',
  '{n} frequent jobs are hidden, and not counted here.': '1 frequent job is hidden, and not counted here.',
  '{n} lines skipped': '1 line skipped',
  'Import without them': 'Import without it',
  '{n} jobs with these names already exist': '1 job with this name already exists',
  'Replace them': 'Replace it',
  'If they are different jobs, import into another app.': 'If it is a different job, import into another app.',
  '{n} times in a row': 'once',
  '{n} objects created or changed': '1 object created or changed',
  '{n} runs were deleted so far': '1 run was deleted so far',
  'Too many jobs to count. {n} jobs are not included.': 'Too many jobs to count. 1 job is not included.',
};

/** A text of the page in the language that is shown. English is what stands in the code; zh.ts has all of it again. */
export function t(text: Text, values?: Record<string, string | number>): string {
  let s: string = lang.value === 'zh' ? words?.[text] ?? text : (String(values?.n) === '1' && ones[text]) || text;
  if (values) s = s.replace(/\{(\w+)\}/g, (all, k) => (k in values ? String(values[k]) : all));
  return s;
}

/** The text for a word of the API; the word itself where there is none. */
export const word = (texts: Record<string, Text>, of: string) => (texts[of] ? t(texts[of]) : of);

// What the server says is English. In Chinese the page says it by what never changes of it, see zh-server.ts.

type Patterns = [RegExp, string][];
/** A text by the first pattern that it matches, its parts by `parts`; undefined where it matches none. */
function match(patterns: Patterns, text: string, parts: (s: string) => string): string | undefined {
  for (const [how, words] of patterns) {
    const m = how.exec(text);
    if (m) return words.replace(/\$(~?)(\d)/g, (_, deep, i) => (deep ? parts(m[+i] ?? '') : durationSaid(m[+i] ?? '')));
  }
  return undefined;
}
const chinese = () => (lang.value === 'zh' ? server : null);

/** What is wrong with a field, and other notes on definitions: by their code, or as the server put it. */
export function sentence(s: Sentence): string {
  return chinese()?.sentences[s.code]?.replace(/\$(\d)/g, (_, i) => durationSaid(s.values?.[i - 1] ?? '')) ?? s.message;
}
/** What is told of a crontab. Where that is about a field, the message begins with it. */
export function noteSaid(n: Sentence & { field?: string }): string {
  const is = sentence(n);
  return is === n.message || !n.field ? is : `${n.field}：${is}`;
}
/** Why a run ended as it did: by the code, and by the text for its values. Where there is no code, as in an alert, by the text alone. */
export function reasonSaid(text: string, code?: string): string {
  const s = chinese();
  if (!s) return text;
  const every = Object.values(s.reasons).flat();
  return coded(code === undefined ? every : s.reasons[code] ?? [], text, every, code !== undefined);
}
/** For what a due time waits. */
export function waitSaid(w: { for: string; why: string }): string {
  const s = chinese();
  return s ? coded(s.waits[w.for] ?? [], w.why, [], true) : w.why;
}
/** A text as its code says it: as a whole, or sentence by sentence, what else there is by any code; or else in the words for the code. */
function coded(own: Patterns, text: string, others: Patterns, known: boolean): string {
  const whole = match(own, text, reasonPart);
  if (whole !== undefined) return whole;
  const parts = text.split('; '), are = parts.map((p) => match(own, p, reasonPart));
  if (known ? are.some((is) => is !== undefined) : are[0] !== undefined) return are.map((is, i) => is ?? match(others, parts[i], reasonPart) ?? parts[i]).join('；');
  return (known && own.find(([, words]) => !words.includes('$'))?.[1]) || text;
}
/** What is part of a reason: by whom, or what somebody wrote. */
const reasonPart = (text: string) => (text.startsWith(' by ') ? `（${text.slice(4)}）` : text && `：${text}`);
/** What an alert says. */
export function alertSaid(text: string): string {
  const s = chinese();
  return (s && match(s.alerts, text, alertSaid)) ?? reasonSaid(text);
}
/** What a message or the archive command met with. */
export function otherSaid(text: string): string {
  const s = chinese();
  return (s && match(s.others, text, otherSaid)) ?? text;
}
/** An explanation, by its cause. */
export const explained = (cause: string, answer: string) => (lang.value === 'zh' && server?.causes[cause]) || answer;
/** A problem, by its type: its title and what it says, undefined in English. */
export function problemSaid(type: string): [title: string, advice: string] | undefined {
  return lang.value === 'zh' ? server?.problems[(type ?? '').replace('urn:go-crontab:problem:', '')] : undefined;
}
/** What doctor found, by its code, or by its check. Undefined in English. */
export const findingSaid = (f: { check: string; code?: string }): string | undefined => (lang.value === 'zh' ? server?.findings[f.code ?? ''] ?? server?.checks[f.check]?.[1] : undefined);
/** What doctor looks at, by the id of the check: what is so, what is found otherwise, and why that matters. Undefined in English. */
export const checkSaid = (id: string): [about: string, found: string, why: string] | undefined => (lang.value === 'zh' ? server?.checks[id] : undefined);
