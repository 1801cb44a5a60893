import { signal } from '@preact/signals';

export type Lang = 'en' | 'zh';

/** The language that is shown. */
export const lang = signal<Lang>('en');
