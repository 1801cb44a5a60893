import { render } from 'preact';
import { reloadIfReachable } from './api';
import { App } from './app';
import { begin } from './i18n';
import './style.css';

// A node of another version has other files: then the page is loaded again, once. What was typed is kept.
addEventListener('vite:preloadError', () => {
  if (Date.now() - Number(sessionStorage.getItem('reloaded') ?? 0) < 30_000) return;
  sessionStorage.setItem('reloaded', String(Date.now()));
  void reloadIfReachable().then((reloads) => { if (!reloads) sessionStorage.removeItem('reloaded'); });
});

void begin().then(() => render(<App />, document.getElementById('page')!));
