import { render } from 'preact';
import { App } from './app';
import { begin } from './i18n';
import './style.css';

void begin().then(() => render(<App />, document.getElementById('page')!));
