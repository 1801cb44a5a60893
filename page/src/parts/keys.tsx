import { me } from '../api';
import { t, type Text } from '../i18n';
import { go } from '../router';
import { closeDialog, dialog, Dialog, show } from './basic';
import { nav } from './nav';
import { openPalette } from './palette';

// The keys of the page. None of them works while somebody types, or while a dialog is open.

const keys: [keys: string[], text: Text][] = [
  [['/'], 'Search, and do things'], [['j', 'k'], 'Next and previous row of a list'], [['Enter'], 'Open the row'], [['?'], 'Show the keys'], [['Esc'], 'Close'],
];

/** Follows the keyboard until what it returns is called. */
export function followKeys() {
  let leads = 0; // when g was pressed
  const press = (e: KeyboardEvent) => {
    const el = e.target as HTMLElement, typing = /^(INPUT|TEXTAREA|SELECT)$/.test(el.tagName) && (el as HTMLInputElement).type !== 'checkbox';
    const modified = e.ctrlKey || e.altKey || e.metaKey;
    if (!me.value || dialog.value || document.querySelector('dialog[open]') || e.isComposing) {
      if (e.key === 'k' && (e.ctrlKey || e.metaKey)) e.preventDefault(); // not the browser's own search
      return;
    }
    if ((e.key === 'k' && (e.ctrlKey || e.metaKey)) || (e.key === '/' && !typing && !modified)) {
      e.preventDefault();
      return openPalette();
    }
    if (typing || modified) return;
    const led = performance.now() - leads < 1500, to = led && nav.find((n) => n.key === e.key);
    leads = 0;
    if (to) go(to.to);
    else if (e.key === 'g') leads = performance.now();
    else if (e.key === '?') show(() => <Keys />);
    else if (e.key === 'j' || e.key === 'k') step(e.key === 'j' ? 1 : -1);
  };
  addEventListener('keydown', press);
  return () => removeEventListener('keydown', press);
}

/** Moves the focus to the link of the next row, or of the one before it. Without a focus it begins at the first that can be seen. */
function step(by: 1 | -1) {
  const links = [...document.querySelectorAll<HTMLElement>('main .rows .jobrow, main tbody tr, main ol.slots > li')].map((row) => ({ row, link: row.querySelector<HTMLElement>('a, button') })).filter((x) => x.link && x.row.offsetParent);
  const at = links.findIndex((x) => x.row.contains(document.activeElement));
  const next = at >= 0 ? links[at + by] : links.find((x) => x.row.getBoundingClientRect().top >= 0);
  next?.link!.focus();
  next?.row.scrollIntoView({ block: 'nearest' });
}

const Keys = () => (
  <Dialog title={t('Keys')} close={closeDialog}>
    <div class="body">
      <dl class="keys">
        {keys.map(([k, text]) => <div key={text}><dt>{k.map((x) => <kbd key={x}>{x}</kbd>)}</dt><dd>{t(text)}</dd></div>)}
        {nav.map((n) => <div key={n.to}><dt><kbd>g</kbd><kbd>{n.key}</kbd></dt><dd>{t(n.text)}</dd></div>)}
      </dl>
    </div>
  </Dialog>
);
