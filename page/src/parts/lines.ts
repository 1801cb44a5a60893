import { bare, copyOf, fresh, line, overwritten, pass, type Piece, type State } from '../ansi';

// What a run has written, as rows of which a few are looked at at a time. It grows at its end, and each new piece costs
// what it is long, not what is there already. It is bounded: of what is too much the beginning goes.

const longest = 4000; // characters of a row; a longer line is several
const bounds = { rows: 200_000, characters: 24 << 20 };

export class Lines {
  private texts: string[] = [];
  private looks: State[] = []; // with which each row begins; most share theirs
  private numbers: number[] = []; // of its line, 0 if it goes on with the one before
  private look = fresh(); // behind the last row
  private line = 0; // the number of the last line
  private start = 0; // its first row
  private open = false; // it has no end yet
  private characters = 0;
  /** How many rows at the beginning are no longer here. */
  gone = 0;

  get count() { return this.texts.length; }
  /** How many lines at the beginning are no longer here, or not whole. */
  get lost() { return this.gone === 0 ? 0 : (this.numbers.find((n) => n > 0) ?? this.line + 1) - 1; }

  /** How many lines are here. */
  get kept() { return this.line - this.lost; }
  /** The last rows that are not empty, without colours. */
  tail(most: number): string[] {
    const rows: string[] = [];
    for (let i = this.count - 1; i >= 0 && rows.length < most; i--) {
      const text = this.pieces(i).map((p) => p.text).join('').trimEnd();
      if (text) rows.unshift(text.slice(0, 300));
    }
    return rows;
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
    const from = overwritten(text);
    if (from > 0) {
      this.pass(text.slice(0, from));
      text = text.slice(from);
      while (this.count > this.start) this.drop();
    }
    do {
      const row = text.slice(0, cut(text));
      this.numbers.push(this.count === this.start ? this.line : 0);
      this.looks.push(this.look);
      this.texts.push(row);
      this.characters += row.length;
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
    for (const list of [this.texts, this.looks, this.numbers]) list.splice(0, n);
    this.start = Math.max(0, this.start - n);
    this.gone += n;
  }

  number(i: number) { return this.numbers[i]; }
  length(i: number) { return this.texts[i].length; }
  pieces(i: number): Piece[] { return line(this.texts[i], copyOf(this.looks[i])); }

  /** Whether a row has a word (in small letters), or begins it and the next row ends it. */
  has(i: number, word: string): boolean {
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
