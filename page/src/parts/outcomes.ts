import { batch, signal, type Signal } from '@preact/signals';
import { get, query } from '../api';
import { following, onNews, streaming } from '../live';
import type { Page, Run } from '../types';

// The last runs of jobs. The list of jobs does not have them, so those of the rows in sight are asked for job by job, a
// few at a time, and kept up to date by what is heard of runs. Each job has a signal of its own: a run that ends renews
// one row, not all.

type Last = Signal<Run[] | undefined>;
const known = new Map<string, Last>();
const keep = 12, atOnce = 6;
const inSight = new Set<string>(), waiting = new Set<string>();
let asking = 0;

/** Grows when runs of any job have become known. */
export const heardOf = signal(0);

export function lastRuns(id: string): Last {
  let s = known.get(id);
  if (!s) known.set(id, (s = signal(undefined)));
  return s;
}
/** Those that are known by now, undefined if there are none. */
export const lastKnown = (id: string) => known.get(id)?.peek();

/** A row of the job is in sight until what this returns is called. Its runs are asked for, unless they are known; not while it scrolls past. */
export function want(id: string) {
  inSight.add(id);
  const timer = setTimeout(() => { if (!runsOf(id)) ask(id); }, 120);
  return () => {
    clearTimeout(timer);
    inSight.delete(id);
    waiting.delete(id);
  };
}
export const isInSight = (id: string) => inSight.has(id);

function ask(id: string) {
  waiting.add(id);
  void next();
}
async function next() {
  if (asking >= atOnce) return;
  const id = waiting.values().next().value;
  if (id === undefined) return;
  waiting.delete(id);
  asking++;
  try {
    const page = await get<Page<Run>>(`/api/v1/runs${query({ job_id: id, limit: keep })}`);
    put(new Map([[id, page.items]]), 150);
  } catch { /* the banner says that the node does not answer */ }
  asking--;
  if (waiting.size) void next();
}

// What comes in is shown together, not each by itself: the list looks at all jobs then. Somebody who scrolls waits less.
const fresh = new Map<string, Run[]>();
let flushing = 0;
function put(some: Map<string, Run[]>, within: number) {
  for (const [id, runs] of some) fresh.set(id, runs);
  flushing ||= window.setTimeout(() => {
    flushing = 0;
    batch(() => {
      for (const [id, runs] of fresh) lastRuns(id).value = runs;
      fresh.clear();
      heardOf.value++;
    });
  }, within);
}
const runsOf = (id: string) => fresh.get(id) ?? lastKnown(id);

/** Takes in what was heard of runs. Jobs nobody has looked at yet are left out: they are asked for when they come into sight. */
function heard(runs: Run[]) {
  const changed = new Map<string, Run[]>();
  for (const r of runs) {
    const before = changed.get(r.job_id) ?? runsOf(r.job_id);
    if (!before) continue;
    const i = before.findIndex((k) => k.id === r.id && k.due === r.due);
    if (i >= 0) {
      if (before[i].state === r.state && before[i].outcome === r.outcome) continue;
      const copy = before.slice();
      copy[i] = r;
      changed.set(r.job_id, copy);
    } else {
      changed.set(r.job_id, [...before, r].sort((a, b) => at(b) - at(a)).slice(0, keep));
    }
  }
  if (changed.size) put(changed, 700);
}
const at = (r: Run) => Date.parse(r.started ?? r.due);

/** Runs were counted, not told, or news were missed: what is in sight is asked for again, the rest when it comes into sight. */
function forget(ids: Iterable<string>) {
  batch(() => {
    for (const id of ids) {
      fresh.delete(id);
      if (inSight.has(id)) ask(id);
      else if (known.has(id)) lastRuns(id).value = undefined;
    }
  });
}

let users = 0, timer = 0, off: (() => void) | undefined;
async function refresh() {
  if (document.hidden || !following.value) return;
  try { heard((await get<Page<Run>>('/api/v1/runs?limit=100')).items); } catch { /* as above */ }
}
/** Keeps them up to date until what it returns is called. */
export function follow() {
  if (users++ === 0) {
    timer = window.setInterval(() => { if (!streaming.value) void refresh(); }, 3000);
    off = onNews((n) => {
      if (!n) return forget(known.keys());
      if (n.type === 'runs') return forget(n.data.other ? known.keys() : n.data.counts.map((c: { job_id: string }) => c.job_id));
      if (n.type === 'run' && n.data?.id && n.data?.due) heard([n.data]);
    });
  }
  return () => {
    if (--users === 0) { clearInterval(timer); off?.(); known.clear(); fresh.clear(); waiting.clear(); inSight.clear(); }
  };
}
