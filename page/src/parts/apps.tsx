import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { get } from '../api';
import { t } from '../i18n';
import type { Job, Page } from '../types';

// The choice of an app. Nothing lists all apps there are, so it offers those of the first jobs and those that were met so far,
// and takes any name.

const met = signal<string[]>([]);

export function learnApps(of: { app: string }[]) {
  const all = new Set(met.peek());
  for (const { app } of of) all.add(app);
  if (all.size > met.peek().length) met.value = [...all].sort();
}

export function AppField({ value, set }: { value: string; set: (app: string | undefined) => void }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => { if (!met.peek().length) get<Page<Job>>('/api/v1/jobs?limit=200').then((p) => learnApps(p.items), () => undefined); }, []);
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
