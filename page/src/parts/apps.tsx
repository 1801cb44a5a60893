import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { get } from '../api';
import { t } from '../i18n';
import type { Page } from '../types';

// The choice of an app. It offers the apps there are, and takes any name.

const met = signal<string[]>([]);

export function learnApps(of: { app: string }[]) {
  const all = new Set(met.peek());
  for (const { app } of of) all.add(app);
  if (all.size > met.peek().length) met.value = [...all].sort();
}

let asked = false;
/** Asks for all apps, once. */
export function askApps() {
  if (asked) return;
  asked = true;
  get<Page<{ name: string }>>('/api/v1/apps').then((p) => learnApps(p.items.map(({ name }) => ({ app: name }))), () => { asked = false; });
}
export const apps = () => met.value;

export function AppField({ value, set }: { value: string; set: (app: string | undefined) => void }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(askApps, []);
  const take = (v: string) => { if (v.trim() !== value) set(v.trim() || undefined); };
  useEffect(() => { if (text && text !== value && met.value.includes(text)) take(text); }, [met.value]); // it was typed before the list was there
  return (
    <>
      <input class="short" type="search" list="apps" aria-label={t('App')} placeholder={t('All apps')} autocomplete="off" value={text}
        onInput={(e) => { const v = e.currentTarget.value; setText(v); if (v === '' || met.peek().includes(v)) take(v); }} onBlur={() => take(text)} onKeyDown={(e) => { if (e.key === 'Enter') take(text); }} />
      <datalist id="apps">{met.value.map((a) => <option key={a} value={a} />)}</datalist>
    </>
  );
}
