// Output of commands is shown as text, never as HTML. Colours become classes; every other escape sequence is dropped,
// other control characters and those that turn the direction of a text around become visible.

export interface Piece { text: string; style: string; odd?: boolean }

interface Look { fg: string; bg: string; bold: boolean; dim: boolean; italic: boolean; under: boolean; inverse: boolean }
const plain = (): Look => ({ fg: '', bg: '', bold: false, dim: false, italic: false, under: false, inverse: false });

/** What outlives a line. */
export interface State { look: Look }
export const fresh = (): State => ({ look: plain() });
export const copyOf = (s: State): State => ({ look: { ...s.look } });

// eslint-disable-next-line no-control-regex
const escape = /\x1b\[([0-9;:?<=>]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]?|\x9b[0-9;]*[@-~]/g;
const odd = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

function name(code: string) {
  const n = code.charCodeAt(0);
  if (n < 0x20) return String.fromCharCode(0x2400 + n);
  if (n === 0x7f) return '\u2421';
  return 'U+' + n.toString(16).toUpperCase().padStart(4, '0');
}

function styleOf(l: Look) {
  const [fg, bg] = l.inverse ? [l.bg || 'bg', l.fg || 'fg'] : [l.fg, l.bg];
  return [fg && 'f-' + fg, bg && 'b-' + bg, l.bold && 'a-bold', l.dim && 'a-dim', l.italic && 'a-italic', l.under && 'a-under'].filter(Boolean).join(' ');
}

// The 256 colours are brought down to the 16 that have a name: those are readable on both backgrounds.
function nearest(n: number): string {
  if (n < 16) return String(n);
  if (n >= 232) return n < 238 ? '0' : n < 244 ? '8' : n < 250 ? '7' : '15';
  const c = n - 16, [r, g, b] = [Math.floor(c / 36), Math.floor(c / 6) % 6, c % 6], top = Math.max(r, g, b);
  if (top === 0) return '0';
  const base = (r * 2 > top ? 1 : 0) + (g * 2 > top ? 2 : 0) + (b * 2 > top ? 4 : 0);
  return String(base + (top > 3 ? 8 : 0));
}

function apply(l: Look, codes: string) {
  const n = codes === '' ? [0] : codes.split(/[;:]/).map(Number);
  for (let i = 0; i < n.length; i++) {
    const c = n[i];
    if (c === 0) Object.assign(l, plain());
    else if (c === 1) l.bold = true;
    else if (c === 2) l.dim = true;
    else if (c === 3) l.italic = true;
    else if (c === 4) l.under = true;
    else if (c === 7) l.inverse = true;
    else if (c === 22) l.bold = l.dim = false;
    else if (c === 23) l.italic = false;
    else if (c === 24) l.under = false;
    else if (c === 27) l.inverse = false;
    else if (c >= 30 && c <= 37) l.fg = String(c - 30);
    else if (c === 39) l.fg = '';
    else if (c >= 40 && c <= 47) l.bg = String(c - 40);
    else if (c === 49) l.bg = '';
    else if (c >= 90 && c <= 97) l.fg = String(c - 82);
    else if (c >= 100 && c <= 107) l.bg = String(c - 92);
    else if (c === 38 || c === 48) {
      let colour = '';
      if (n[i + 1] === 5) { colour = nearest(n[i + 2] ?? 0); i += 2; }
      else if (n[i + 1] === 2) {
        const [r, g, b] = n.slice(i + 2, i + 5).map((v) => Math.min(5, Math.round((v || 0) / 51)));
        colour = nearest(16 + 36 * r + 6 * g + b);
        i += 4;
      }
      if (c === 38) l.fg = colour; else l.bg = colour;
    }
  }
}

function visible(text: string, style: string, out: Piece[]) {
  let last = 0;
  for (const m of text.matchAll(odd)) {
    if (m.index > last) out.push({ text: text.slice(last, m.index), style });
    out.push({ text: name(m[0]), style, odd: true });
    last = m.index + m[0].length;
  }
  if (last < text.length) out.push({ text: text.slice(last), style });
}

/** Where what is left of a line begins, if carriage returns wrote over its beginning: progress bars end as their last state. */
export function overwritten(text: string): number {
  let end = text.length;
  while (end > 0 && text.charCodeAt(end - 1) === 13) end--;
  return end > 0 ? text.lastIndexOf('\r', end - 1) + 1 : 0;
}

/** Goes on behind a text without showing it. */
export function pass(text: string, state: State) {
  if (!text.includes('\x1b')) return;
  for (const m of text.matchAll(escape)) if (m[2] === 'm') apply(state.look, m[1] ?? '');
}

/** A part of a line in which nothing was written over. */
export function line(text: string, state: State): Piece[] {
  text = text.replace(/\r+$/, '');
  const out: Piece[] = [];
  let last = 0;
  for (const m of text.matchAll(escape)) {
    if (m.index > last) visible(text.slice(last, m.index), styleOf(state.look), out);
    if (m[2] === 'm') apply(state.look, m[1] ?? '');
    last = m.index + m[0].length;
  }
  if (last < text.length) visible(text.slice(last), styleOf(state.look), out);
  return out;
}

/** The text without escape sequences, for searching. */
export const bare = (text: string) => text.replace(escape, '');
