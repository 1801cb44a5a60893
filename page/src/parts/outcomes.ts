import { signal } from '@preact/signals';
import { get, query } from '../api';
import { following, onNews, streaming } from '../live';
import type { Page, Run } from '../types';

// The last runs of the jobs that are in sight. The list of jobs does not have them, so they are asked for job by job, a
// few at a time, and kept up to date by what the cluster's latest runs are.

export const lastRuns = signal<Map<string, Run[]>>(new Map());
const keep = 12, atOnce = 6;
const waiting = new Set<string>();
let asking = 0;

/** Asks for the runs of a job, unless they are known. */
export function want(id: string) {
  if (runsOf(id) || waiting.has(id)) return;
  waiting.add(id);
  void next();
}
/** What is out of sight by the time it would be asked for is not. */
export function dontWant(id: string) { waiting.delete(id); }

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
    lastRuns.value = new Map([...lastRuns.value, ...fresh]);
    fresh.clear();
  }, within);
}
const runsOf = (id: string) => fresh.get(id) ?? lastRuns.value.get(id);

/** Takes in what was heard of runs. Jobs nobody has looked at yet are left out: they are asked for when they come into sight. */
export function heard(runs: Run[]) {
  const changed = new Map<string, Run[]>();
  for (const r of runs) {
    const known = changed.get(r.job_id) ?? runsOf(r.job_id);
    if (!known) continue;
    const i = known.findIndex((k) => k.id === r.id && k.due === r.due);
    if (i >= 0) {
      if (known[i].state === r.state && known[i].outcome === r.outcome) continue;
      const copy = known.slice();
      copy[i] = r;
      changed.set(r.job_id, copy);
    } else {
      changed.set(r.job_id, [...known, r].sort((a, b) => at(b) - at(a)).slice(0, keep));
    }
  }
  if (changed.size) put(changed, 700);
}
const at = (r: Run) => Date.parse(r.started ?? r.due);

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
      if (!n) return void refresh();
      if (n.type.startsWith('run') && n.data?.id && n.data?.due) heard([n.data]);
    });
  }
  return () => {
    if (--users === 0) { clearInterval(timer); off?.(); fresh.clear(); lastRuns.value = new Map(); }
  };
}
