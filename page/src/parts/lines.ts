import { bare, copyOf, fresh, line, overwritten, pass, type Piece, type State } from '../ansi';
import type { OutputEvent } from '../types';

// What a run has written, as rows of which a few are looked at at a time. It grows at its end, and each new piece costs
// what it is long, not what is there already. It is bounded: of what is too much the beginning goes.

const longest = 4000; // characters of a row; a longer line is several
const bounds = { rows: 500_000, characters: 24 << 20 };

/** When a line came, in milliseconds since the start (negative: unknown), and whether some of it came from stderr. */
export interface Stamp { ms: number; stderr: boolean }

/** What was not kept between two rows. Without a number of lines, it is not known. */
export interface Gap { bytes: number; lines: number }

/** What people write about errors. */
const trouble = /\b(error|err|fatal|failed|failure|exception|panic|traceback|denied|cannot|not found|refused|timed? ?out)\b/i;

export class Lines {
  private texts: string[] = [];
  private looks: State[] = []; // with which each row begins; most share theirs
  private numbers: number[] = []; // of its line, 0 if it goes on with the one before
  private look = fresh(); // behind the last row
  private line = 0; // the number of the last line
  private start = 0; // its first row
  private open = false; // it has no end yet
  private characters = 0;
  private stamps: (Stamp | undefined)[] = []; // of each row; most share theirs
  private coming: number[][] = []; // stamps of the lines of the last piece
  private came = 0; // how many of them are in use
  private stamp: Stamp | undefined;
  private gaps = new Map<number, Gap>(); // by the row that stands for it, counted from the first row there ever was
  private next = 0; // the byte behind the last piece
  /** How many rows at the beginning are no longer here. */
  gone = 0;

  get count() { return this.texts.length; }
  /** How many lines at the beginning are no longer here, or not whole. */
  get lost() { return this.gone === 0 ? 0 : (this.numbers.find((n) => n > 0) ?? this.line + 1) - 1; }

  /** How many lines are here. */
  get kept() { return this.numbers.reduce((n, x) => n + (x > 0 ? 1 : 0), 0); }
  /** Whether something between them is not here. */
  get holes() { return this.gaps.size > 0; }
  /** The last rows that are not empty, without colours. */
  tail(most: number): string[] {
    const rows: string[] = [];
    for (let i = this.count - 1; i >= 0 && rows.length < most; i--) {
      const text = this.gap(i) ? '' : this.pieces(i).map((p) => p.text).join('').trimEnd();
      if (text) rows.unshift(text.slice(0, 300));
    }
    return rows;
  }

  /** The lines that say what went wrong, as far as can be told: the last ones from stderr, or that speak of an error, or the last ones. */
  errors(most: number): string[] {
    const pick = (wanted: (i: number, text: string) => boolean) => {
      const rows: string[] = [];
      for (let i = this.count - 1, looks = 0; i >= 0 && looks < 400 && rows.length < most; i--, looks++) {
        const text = this.gap(i) ? '' : this.pieces(i).map((p) => p.text).join('').trimEnd();
        if (text && wanted(i, text)) rows.unshift(text.slice(0, 300));
      }
      return rows;
    };
    for (const wanted of [(i: number) => !!this.stamps[i]?.stderr, (_: number, text: string) => trouble.test(text)]) {
      const rows = pick(wanted);
      if (rows.length > 0) return rows;
    }
    return this.tail(most);
  }

  /** Takes in the next piece. Where it does not begin at the end of the one before, there is a gap. */
  piece(p: OutputEvent) {
    if (p.from > this.next) {
      const ended = this.open ? this.line - 1 : this.line;
      this.open = false;
      this.start = this.count;
      this.gaps.set(this.gone + this.count, { bytes: p.from - this.next, lines: Math.max(0, (p.line ?? 1) - 1 - ended) });
      this.row('', -1);
    }
    if (!this.open) this.line = (p.line ?? this.line + 1) - 1;
    this.next = p.next;
    this.coming = p.stamps ?? [];
    this.came = 0;
    this.add(p.text ?? '');
  }

  private row(text: string, number: number) {
    this.texts.push(text);
    this.looks.push(this.look);
    this.numbers.push(number);
    this.stamps.push(number < 0 ? undefined : this.stamp);
    this.characters += text.length;
  }

  add(text: string) {
    if (text === '') return;
    const parts = text.split('\n'), last = parts.pop()!;
    for (const p of parts) this.put(p, true);
    if (last !== '') this.put(last, false);
    if (this.count > bounds.rows || this.characters > bounds.characters) this.shrink();
  }

  /** Takes in a line, or what there is of it so far. */
  private put(text: string, whole: boolean) {
    if (this.open) { // its last row goes on
      this.look = this.looks[this.count - 1];
      text = this.drop() + text;
    } else {
      this.line++;
      this.start = this.count;
    }
    for (; this.came < this.coming.length && this.coming[this.came][0] <= this.line; this.came++) {
      const [, ms, stderr] = this.coming[this.came];
      this.stamp = { ms, stderr: stderr === 1 };
    }
    const from = overwritten(text);
    if (from > 0) {
      this.pass(text.slice(0, from));
      text = text.slice(from);
      while (this.count > this.start) this.drop();
    }
    do {
      const row = text.slice(0, cut(text));
      this.row(row, this.count === this.start ? this.line : 0);
      this.pass(row);
      text = text.slice(row.length);
    } while (text !== '');
    this.open = !whole;
  }

  private drop(): string {
    const text = this.texts.pop()!;
    this.characters -= text.length;
    this.looks.pop();
    this.numbers.pop();
    this.stamps.pop();
    return text;
  }

  private pass(text: string) {
    if (!text.includes('\x1b')) return;
    this.look = copyOf(this.look);
    pass(text, this.look);
  }

  private shrink() {
    let n = 0; // a tenth more than needed, so that it is not done for each line
    while (n < this.count - 1 && (this.count - n > bounds.rows * 0.9 || this.characters > bounds.characters * 0.9)) this.characters -= this.texts[n++].length;
    for (const list of [this.texts, this.looks, this.numbers, this.stamps]) list.splice(0, n);
    this.start = Math.max(0, this.start - n);
    this.gone += n;
  }

  number(i: number) { return Math.max(0, this.numbers[i]); }
  gap(i: number): Gap | undefined { return this.numbers[i] < 0 ? this.gaps.get(this.gone + i) : undefined; }
  at(i: number): Stamp | undefined { return this.stamps[i]; }
  /** The row in which a line begins; -1 if it is not here. */
  rowOf(line: number) { return this.numbers.indexOf(line); }
  length(i: number) { return this.texts[i].length; }
  pieces(i: number): Piece[] { return line(this.texts[i], copyOf(this.looks[i])); }

  /** Whether a row has a word (in small letters), or begins it and the next row ends it. */
  has(i: number, word: string): boolean {
    if (this.numbers[i] < 0) return false;
    let text = this.texts[i];
    if (this.numbers[i + 1] === 0) text += this.texts[i + 1].slice(0, word.length - 1);
    return (text.includes('\x1b') ? bare(text) : text).toLowerCase().includes(word);
  }
}

/** Where a row ends: not within a character, nor within an escape sequence that is not long. */
function cut(text: string): number {
  if (text.length <= longest) return text.length;
  const escape = text.lastIndexOf('\x1b', longest - 1);
  if (escape > longest - 40) return escape;
  return (text.charCodeAt(longest - 1) & 0xfc00) === 0xd800 ? longest - 1 : longest;
}
