import { signal } from '@preact/signals';
import type { Text } from './zh';

export type Lang = 'en' | 'zh';
export type { Text } from './zh';

const wanted = (): Lang => {
  const kept = localStorage.getItem('lang');
  if (kept === 'en' || kept === 'zh') return kept;
  return navigator.languages.find((l) => /^(en|zh)\b/i.test(l))?.slice(0, 2).toLowerCase() === 'zh' ? 'zh' : 'en';
};

/** The language that is shown. */
export const lang = signal<Lang>('en');
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

/** A text of the page in the language that is shown. English is what stands in the code; zh.ts has all of it again. */
export function t(text: Text, values?: Record<string, string | number>): string {
  let s: string = lang.value === 'zh' ? words?.[text] ?? text : text;
  if (values) s = s.replace(/\{(\w+)\}/g, (all, k) => (k in values ? String(values[k]) : all));
  return s;
}

/** The text for a word of the API; the word itself where there is none. */
export const word = (texts: Record<string, Text>, of: string) => (texts[of] ? t(texts[of]) : of);

// What the server says is English. In Chinese the page says it by what never changes of it, see zh-server.ts.

/** A short text of the server: a reason, or what is wrong with a field. */
export function said(text: string): string {
  if (lang.value !== 'zh' || !server) return text;
  for (const [how, words] of server.patterns) {
    const m = how.exec(text);
    if (m) return words.replace(/\$(~?)(\d)/g, (_, deep, i) => (deep ? said(m[+i] ?? '') : m[+i] ?? ''));
  }
  return text;
}
/** An explanation, by its cause. */
export const explained = (cause: string, answer: string) => (lang.value === 'zh' && server?.causes[cause]) || answer;
/** A problem, by its type: its title and what it says, undefined in English. */
export function problemSaid(type: string): [title: string, advice: string] | undefined {
  return lang.value === 'zh' ? server?.problems[type.replace('urn:go-crontab:problem:', '')] : undefined;
}
/** What doctor looks at, by the id of the check: what is so, what is found otherwise, and why that matters. Undefined in English. */
export const checkSaid = (id: string): [about: string, found: string, why: string] | undefined => (lang.value === 'zh' ? server?.checks[id] : undefined);
