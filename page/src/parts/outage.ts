import type { AuditEntry, Run } from '../types';

// Outages, told from what is recorded: nobody writes down that no node lived, or that MySQL was away. An outage is a time
// between two punctual starts in which nothing started when it was due, although something was due, if that is borne out by
// due times that nobody could start, by sessions that ended meanwhile, or by three jobs that were late.

export interface Outage {
  from: number; to: number; // milliseconds; the first due time that was not started in time, and when the last of them was started or is past
  missed: number; // due times that ended missed
  late: Run[]; // runs that started late
  nodes: { at: number; name: string; action: string }[]; // whose sessions ended shortly before, or meanwhile
}

/** A start that is so late counts as late, and one that is less late than punctual shows that all is well. Milliseconds. */
const late = 10_000, punctual = 3_000;
/** How long before the first due time, and after the last, the end of a session is told with an outage: it is noticed late. */
const near = 45_000;

const at = (s: string | undefined) => (s ? Date.parse(s) : NaN);
/** Whether due times ended missed because nobody could start them, and not for what the job says or waits for. */
const nobody = (r: Run) => r.outcome === 'missed' && (r.reason_code === 'misfire' || r.reason_code === 'start_deadline');

export function outages(runs: Run[], sessions: AuditEntry[], from: number, to: number): Outage[] {
  const due = runs.filter((r) => r.trigger === 'schedule' && r.attempt === 1);
  const well = due.filter((r) => r.started && at(r.started) - at(r.due) < punctual).map((r) => at(r.started)).filter((s) => s >= from && s <= to).sort((a, b) => a - b);
  const bad = due.flatMap((r) => {
    const begin = at(r.due);
    if (r.started) return at(r.started) - begin >= late ? [{ begin, end: at(r.started), run: r }] : [];
    return nobody(r) ? [{ begin, end: Math.max(begin, at(r.until ?? r.due)), run: r }] : [];
  }).filter((b) => b.end >= from && b.begin <= to).sort((a, b) => a.begin - b.begin);
  const ended = sessions.filter((e) => ['reap', 'leave', 'fence'].includes(e.action)).map((e) => ({ at: at(e.at), name: e.name ?? '', action: e.action }));

  const out: Outage[] = [];
  for (let i = 0; i < bad.length;) {
    // What lies before the next punctual start behind the first of them belongs together.
    const begin = bad[i].begin, next = well.find((s) => s > begin + punctual) ?? Infinity;
    const part: typeof bad = [];
    for (; i < bad.length && bad[i].begin < next; i++) part.push(bad[i]);
    const end = Math.min(next, Math.max(...part.map((b) => b.end)));
    const lateRuns = part.filter((b) => b.run.started).map((b) => b.run), missedRuns = part.filter((b) => !b.run.started);
    const nodes = ended.filter((e) => e.at > begin - near && e.at < end + near).sort((a, b) => a.at - b.at);
    if (missedRuns.length === 0 && (lateRuns.length === 0 || (nodes.length === 0 && new Set(lateRuns.map((r) => r.job_id)).size < 3))) continue;
    out.push({ from: begin, to: Math.max(end, begin + 1000), missed: missedRuns.reduce((n, b) => n + (b.run.count ?? 1), 0), late: lateRuns, nodes });
  }
  return out;
}
