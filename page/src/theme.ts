import { signal } from '@preact/signals';

export type Theme = 'light' | 'dark';

const system = matchMedia('(prefers-color-scheme: dark)');
const keptTheme = () => { const k = localStorage.getItem('theme'); return k === 'light' || k === 'dark' ? k : null; };

/** Light or dark: as chosen here, or else as the system has it. */
export const theme = signal<Theme>(keptTheme() ?? (system.matches ? 'dark' : 'light'));
system.addEventListener('change', () => { theme.value = keptTheme() ?? (system.matches ? 'dark' : 'light'); });
theme.subscribe((x) => { document.documentElement.dataset.theme = x; });

export function flipTheme() {
  theme.value = theme.value === 'dark' ? 'light' : 'dark';
  localStorage.setItem('theme', theme.value);
}
