import { all, get, now, query } from '../api';
import { ms } from '../time';
import type { DueTime, Job, Page } from '../types';

// The due times of all jobs in a range that lies ahead. There is no list of them: each job is asked, a few at once.

export interface Plan {
  job: Job;
  dues: number[]; // milliseconds, up to a bound
  per?: number; // jobs that are due very often: how many times an hour, beyond the last of dues
}
export const mostJobs = 400;

export async function plans(hours: number, signal: AbortSignal, some: (plans: Plan[], left: number) => void): Promise<{ plans: Plan[]; leftOut: number }> {
  const end = now() + hours * 3600_000;
  const jobs = (await all<Job>('/api/v1/jobs?state=active', 5000, signal)).filter((j) => j.next_due && ms(j.next_due) <= end).sort((a, b) => ms(a.next_due) - ms(b.next_due));
  const todo = jobs.slice(0, mostJobs), out: Plan[] = [];
  let shown = 0;
  const ask = async () => {
    for (let j = todo.shift(); j; j = todo.shift()) {
      const of = async (n: number) => (await get<Page<DueTime>>(`/api/v1/jobs/${j!.id}/next${query({ n })}`, signal)).items.map((d) => ms(d.due));
      let dues = await of(30);
      if (dues.length === 30 && dues[29] < end && (dues[29] - dues[0]) / 29 > 60_000) dues = await of(1000);
      const last = dues[dues.length - 1], plan: Plan = { job: j, dues: dues.filter((d) => d <= end) };
      if (dues.length >= 30 && last < end) plan.per = (3600_000 * (dues.length - 1)) / Math.max(1, last - dues[0]);
      out.push(plan);
      if (Date.now() - shown > 250) { shown = Date.now(); some(out.slice(), todo.length); }
    }
  };
  await Promise.all(Array.from({ length: 6 }, ask));
  return { plans: out, leftOut: Math.max(0, jobs.length - mostJobs) };
}
