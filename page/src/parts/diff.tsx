import type { Change } from '../types';

/** A value as people read it. */
export const plain = (v: unknown): string => (v === undefined || v === null ? '' : typeof v === 'string' ? v : typeof v === 'object' ? JSON.stringify(v, null, 1).replace(/\n\s*/g, ' ') : String(v));

export const Diff = ({ changes }: { changes: Change[] }) => (
  <div class="diff">
    {changes.map((c) => (
      <div key={c.field}>
        <b>{c.field}</b>
        <span>{c.was !== undefined && <del>{plain(c.was)}</del>}{c.becomes !== undefined && <ins>{plain(c.becomes)}</ins>}</span>
      </div>
    ))}
  </div>
);
