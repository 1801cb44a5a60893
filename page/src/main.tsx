import { render } from 'preact';
import { App } from './app';
import { begin } from './i18n';
import './style.css';

// A node of another version has other files: the page is loaded again then, once. What was typed is kept.
addEventListener('vite:preloadError', (e) => {
  if (Date.now() - Number(sessionStorage.getItem('reloaded') ?? 0) < 30_000) return;
  sessionStorage.setItem('reloaded', String(Date.now()));
  e.preventDefault();
  location.reload();
});

void begin().then(() => render(<App />, document.getElementById('page')!));
