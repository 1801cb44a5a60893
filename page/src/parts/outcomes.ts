import { batch, signal, type Signal } from '@preact/signals';
import { get, query } from '../api';
import { following, onNews, streaming } from '../live';
import type { Job, LastRun, Page, Run } from '../types';

// The last runs of jobs, and their health. The list of jobs has them for its first page; those of other rows in sight are
// asked for together, and again after something was heard of their runs. Each job has a signal of its own: a run that ends
// renews one row, not all.

type Last = Signal<LastRun[] | undefined>;
const known = new Map<string, Last>();
const keep = 12, atOnce = 200;
const inSight = new Set<string>(), waiting = new Set<string>();

export function lastRuns(id: string): Last {
  let s = known.get(id);
  if (!s) known.set(id, (s = signal(undefined)));
  return s;
}

/** A row of the job is in sight until what this returns is called. Its runs are asked for, unless they are known; not while it scrolls past. */
export function want(id: string) {
  inSight.add(id);
  const timer = setTimeout(() => { if (!known.get(id)?.peek()) ask(id, 30); }, 120);
  return () => {
    clearTimeout(timer);
    inSight.delete(id);
  };
}
export const isInSight = (id: string) => inSight.has(id);

let asking = false, timer = 0, timerAt = 0;

/** Asks for a job as it is now, with its health and its last runs: together with all that are asked for until then. */
export function ask(id: string, within = 1200) {
  waiting.add(id);
  soon(within);
}
function soon(within: number) {
  const at = performance.now() + within;
  if (asking || (timer && timerAt <= at)) return;
  clearTimeout(timer);
  timerAt = at;
  timer = window.setTimeout(next, within);
}
async function next() {
  timer = 0;
  const ids = [...waiting].slice(0, atOnce);
  if (!ids.length || !users.size) return;
  ids.forEach((id) => waiting.delete(id));
  asking = true;
  try {
    const page = await get<Page<Job>>(`/api/v1/jobs${query({ ids: ids.join(','), with: 'last_runs', limit: atOnce })}`);
    put(page.items);
    const are = new Map<string, Job | null>(ids.map((id) => [id, null]));
    for (const j of page.items) are.set(j.id, j);
    users.forEach((take) => take(are));
  } catch { /* the banner says that the node does not answer */ }
  asking = false;
  if (waiting.size) soon(600);
}

/** Takes in the last runs of jobs, where the answer has them. */
export function put(jobs: Job[]) {
  batch(() => { for (const j of jobs) lastRuns(j.id).value = j.last_runs ?? []; });
}

/** Takes in what was heard of runs. Jobs nobody has looked at yet are left out: they are asked for when they come into sight. */
function heard(runs: Run[]) {
  batch(() => {
    for (const r of runs) {
      const last = known.get(r.job_id), before = last?.peek();
      if (!last || !before) continue;
      const i = before.findIndex((k) => k.id === r.id && k.due === r.due);
      if (i < 0) last.value = [r, ...before].sort((a, b) => at(b) - at(a)).slice(0, keep);
      else if (before[i].state !== r.state || before[i].outcome !== r.outcome) last.value = before.map((k, n) => (n === i ? { ...k, ...r } : k));
    }
  });
}
const at = (r: LastRun) => Date.parse(r.started ?? r.due);

/** Runs were counted, not told, or news were missed: what is in sight is asked for again, the rest when it comes into sight. */
function forget(ids: Iterable<string>) {
  batch(() => {
    for (const id of ids) {
      if (inSight.has(id)) ask(id);
      else if (known.has(id)) lastRuns(id).value = undefined;
    }
  });
}

const users = new Set<(are: Map<string, Job | null>) => void>();
let poll = 0, off: (() => void) | undefined;
async function refresh() {
  if (document.hidden || !following.value) return;
  try { heard((await get<Page<Run>>('/api/v1/runs?limit=100')).items); } catch { /* as above */ }
}

/** Keeps them up to date until what it returns is called. What is asked for is given to take: jobs as they are, null for those that are gone. */
export function follow(take: (are: Map<string, Job | null>) => void) {
  users.add(take);
  if (users.size === 1) {
    poll = window.setInterval(() => { if (!streaming.value) void refresh(); }, 3000);
    off = onNews((n) => {
      if (!n) return forget(known.keys());
      if (n.type === 'runs') return forget(n.data.other ? known.keys() : n.data.counts.map((c: { job_id: string }) => c.job_id));
      if (n.type !== 'run' || !n.data?.id || !n.data?.due) return;
      heard([n.data]);
      if (following.value && inSight.has(n.data.job_id)) ask(n.data.job_id);
    });
  }
  return () => {
    users.delete(take);
    if (users.size === 0) { clearInterval(poll); off?.(); known.clear(); waiting.clear(); inSight.clear(); }
  };
}
