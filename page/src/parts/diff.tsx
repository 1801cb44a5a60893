import type { Change } from '../types';

/** A value as people read it: an object as one line of YAML. */
export const plain = (v: unknown): string => (v === undefined || v === null ? '' : Array.isArray(v) ? `[${v.map(inner).join(', ')}]` : typeof v === 'object' ? Object.entries(v).map(([k, x]) => `${k}: ${inner(x)}`).join(', ') : String(v));
const inner = (v: unknown) => (v && typeof v === 'object' && !Array.isArray(v) ? `{${plain(v)}}` : plain(v));

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
