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

export async function speak(l: Lang) {
  if (l === 'zh') words ??= (await import('./zh')).zh;
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
