import type { Change } from '../types';

/** What differs between two objects, field by field. */
export function differences(was: unknown, became: unknown): Change[] {
  const flat = (v: unknown, at = '', out: Record<string, unknown> = {}) => {
    if (v && typeof v === 'object' && !Array.isArray(v)) for (const [k, x] of Object.entries(v)) flat(x, at ? `${at}.${k}` : k, out);
    else if (at && v !== undefined && v !== '') out[at] = v;
    return out;
  };
  const a = flat(was), b = flat(became);
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((k) => JSON.stringify(a[k]) !== JSON.stringify(b[k])).map((field) => ({ field, was: a[field], becomes: b[field] }));
}

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
