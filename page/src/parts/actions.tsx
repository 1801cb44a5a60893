import { useEffect, useState } from 'preact/hooks';
import { call, get, may, now, onceKey, post, Problem, query } from '../api';
import { sentence, t } from '../i18n';
import { tell, useGet } from '../live';
import { go, here } from '../router';
import { brief, coarse, milliseconds, ms, range, zoneShown } from '../time';
import type { Job, Page, ParamValue, Pause, Rerun, Run } from '../types';
import type { ComponentChildren } from 'preact';
import { ask, Button, Choice, closeDialog, closing, Dialog, Field, Loading, Notice, ProblemBox, Said, say, show, unsuccessful } from './basic';
import { ParamFields, paramsGiven, takesParams, usualParams } from './params';

// What can be done to jobs, with the questions that come first.

const changed = (j: Job) => tell({ type: 'job', job_id: j.id, data: j });

// Requests to run that nobody has answered: who presses again soon means the same one, which may have arrived.
const unanswered = new Map<string, { key: Record<string, string>; at: number }>();
const meantAgain = 5 * 60_000;

/** Writes an object at a path: a new one where there is none of its name, one that was (as `was` says) as long as nobody has changed it meanwhile. */
export async function write(path: string, body: unknown, was: { name: string; version?: number } | undefined) {
  try {
    await call(path, { method: 'PUT', body, headers: !was ? { 'If-None-Match': '*' } : was.version === undefined ? {} : { 'If-Match': `"${was.version}"` } });
  } catch (err) {
    if (was || !(err instanceof Problem) || err.status !== 412) throw err;
    throw new Problem(err.title, err.detail, err.status, [{ field: 'name', code: '', message: t('This name is already taken') }], err.type);
  }
}

/** Starts a job once; one with parameters once its values are given. */
export async function runNow(j: Job, follow: boolean) {
  if (takesParams(j)) show(() => <RunDialog job={j} follow={follow} />);
  else await start(j, follow);
}

function RunDialog({ job: j, follow }: { job: Job; follow: boolean }) {
  const [typed, setTyped] = useState(() => usualParams(j)), [problem, setProblem] = useState<Problem>();
  const work = async () => {
    const close = closing();
    setProblem(undefined);
    try { await start(j, follow, paramsGiven(j, typed), close); } catch (err) { if (err instanceof Problem) setProblem(err); else throw err; }
  };
  const error = (field: string) => problem?.errors.find((e) => e.field === field);
  return (
    <Dialog title={t('Run {job} now', { job: j.name })} close={closeDialog}>
      <div class="body">
        <ParamFields job={j} typed={typed} set={setTyped} error={error} />
        {problem && !problem.errors.some((e) => e.field.startsWith('params.')) && <ProblemBox problem={problem} />}
      </div>
      <footer><Button work={closeDialog}>{t('Cancel')}</Button><Button look="primary" icon="bolt" work={work}>{t('Run now')}</Button></footer>
    </Dialog>
  );
}

/** Starts a job once, and goes to its run as soon as there is one, unless the person has gone elsewhere by then. */
async function start(j: Job, follow: boolean, params: Record<string, ParamValue> = {}, accepted?: () => void) {
  const path = here.value.path, same = j.id + JSON.stringify(params), before = unanswered.get(same);
  const o = before && performance.now() - before.at < meantAgain ? before : { key: onceKey(), at: performance.now() };
  unanswered.set(same, o);
  const asked = await post<{ request: string }>(`/api/v1/jobs/${j.id}/run`, Object.keys(params).length ? { params } : {}, o.key);
  unanswered.delete(same);
  accepted?.();
  say(t('Run started'));
  const run = await runOf(j, { trigger: 'manual' }, asked.request);
  if (run && follow && here.value.path === path) go(`/runs/${run.id}`);
}

/** Waits for the run of a request, some seconds at most. */
async function runOf(j: Job, which: Parameters<typeof query>[0], request: string): Promise<Run | undefined> {
  for (let i = 0; i < 20; i++) {
    await new Promise((ok) => setTimeout(ok, i < 5 ? 150 : 500));
    const { items } = await get<Page<Run>>(`/api/v1/runs${query({ job_id: j.id, ...which, limit: 10 })}`);
    const run = items.find((r) => r.request === request);
    if (!run) continue;
    tell({ type: 'run', job_id: j.id, data: run });
    return run;
  }
  return undefined;
}

/** Asks, and starts the due time of a run once more, or each of the range that a record counts: a backfill of just that. */
export function runDueAgain(r: Run, j: Job, key = onceKey()) {
  const n = r.count ?? 1, path = here.value.path, when = n > 1 && r.until ? range(r.due, r.until, j.timezone).join(' – ') : brief(r.due, j.timezone);
  const at = j.timezone && j.timezone !== zoneShown() ? `${when} ${j.timezone}` : when;
  const follow = async (backfill: string) => {
    const run = n > 1 ? undefined : await runOf(j, { trigger: 'backfill', from: r.due, to: new Date(ms(r.due) + 1).toISOString() }, backfill).catch(() => undefined);
    if (here.value.path === path) go(run ? `/runs/${run.id}` : `/jobs/${j.id}/backfills`);
  };
  ask({
    title: n > 1 ? t('Rerun {job} for these {n} scheduled times?', { job: j.name, n }) : t('Rerun {job} for {at}?', { job: j.name, at }), button: t('Rerun'),
    text: <><p>{t("Runs again for {at}, with today's definition. The command sees the original scheduled time.", { at })}</p>{(j.paused || j.pause) && <p>{t('The job is paused. The run starts once the job is resumed.')}</p>}</>,
    work: async () => {
      const b = await post<{ id: string }>(`/api/v1/jobs/${j.id}/backfill`, { from: r.due, to: r.until ?? r.due }, key);
      say(t('Run started'));
      void follow(b.id);
    },
    instead: (p) => {
      const none = p.errors.some((e) => e.field === 'from' && e.code === 'backfill_empty'), many = p.errors.find((e) => e.field === 'to' && e.code === 'backfill_too_large');
      if (none) return <Notice look="warn" action={<Button icon="bolt" work={() => { closeDialog(); return runNow(j, true); }}>{t('Run now')}</Button>}><p>{t('With its current schedule, the job has no run at that time.')}</p></Notice>;
      if (many) return <Notice look="warn" action={<Button icon="history" work={() => { closeDialog(); go(`/jobs/${j.id}/backfills${query({ from: r.due, to: r.until })}`); }}>{t('Backfill part of the range')}</Button>}><p><Said text={many} /></p></Notice>;
      return undefined;
    },
  });
}

export async function resume(j: Job) {
  const now = await post<Job>(`/api/v1/jobs/${j.id}/resume`);
  changed(now);
  if (now.status === 'paused') say(t('Still paused, because the {scope} is paused.', { scope: now.pause?.scope === 'app' ? t('app') : t('cluster') }), true);
  else say(t('{job} resumed', { job: j.name }));
}

/** Asks for a reason and an end, and pauses what is at a path; or at several, which answer as an array. */
export function askPause(title: string, path: string | string[], done: (answer: any) => void, text?: ComponentChildren) {
  show(() => <PauseDialog title={title} path={path} done={done} text={text} />);
}
export const pauseJob = (j: Job) => askPause(t('Pause {job}', { job: j.name }), `/api/v1/jobs/${j.id}/pause`, (now: Job) => { changed(now); say(t('{job} paused', { job: j.name })); });

function PauseDialog({ title, path, done, text }: { title: string; path: string | string[]; done: (answer: any) => void; text?: ComponentChildren }) {
  const [reason, setReason] = useState('');
  const [until, setUntil] = useState('');
  const [own, setOwn] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const work = async () => {
    const close = closing();
    setProblem(undefined);
    try {
      const body = { ...(reason.trim() && { reason: reason.trim() }), ...(until && { until }) };
      if (typeof path === 'string') done(await post(path, body));
      else {
        const answers: unknown[] = [];
        for (const p of path) answers.push(await post(p, body)); // again does no harm, if one of them fails
        done(answers);
      }
      close();
    } catch (err) { if (err instanceof Problem) setProblem(err); else throw err; }
  };
  const error = (field: string) => problem?.errors.find((e) => e.field === field);
  return (
    <Dialog title={title} close={closeDialog}>
      <div class="body">
        <p class="faint">{t('No new runs will start. Runs in progress will finish.')}</p>
        {text}
        <Field id="reason" label={t('Reason')} error={error('reason')} hint={t('Other users can see it.')}>
          <input id="reason" autoFocus value={reason} maxLength={1000} onInput={(e) => setReason(e.currentTarget.value)} />
        </Field>
        <div class="field">
          <span class="label">{t('Until')}</span>
          <Choice label={t('Until')} value={own ? 'own' : until} set={(v) => { setOwn(v === 'own'); setUntil(v === 'own' ? '90m' : v); }}
            options={[{ value: '', text: t('resumed by hand') }, ...['1h', '4h', '24h'].map((value) => ({ value, text: coarse(milliseconds(value)!) })), { value: 'own', text: t('custom') }]} />
          {own && <input aria-label={t('Until')} class={error('until') ? 'wrong' : ''} value={until} onInput={(e) => setUntil(e.currentTarget.value)} placeholder="90m, 2027-01-31T09:00:00Z" />}
          {error('until') && <p class="error"><Said text={error('until')!} /></p>}
        </div>
        {problem && problem.errors.length === 0 && <ProblemBox problem={problem} />}
      </div>
      <footer><Button work={closeDialog}>{t('Cancel')}</Button><Button look="primary" icon="pause" work={work}>{t('Pause')}</Button></footer>
    </Dialog>
  );
}

/** Asks, and lets the whole cluster go on. */
export const resumeCluster = (done: () => Promise<void>) => ask({
  title: t('Resume the whole cluster?'), button: t('Resume cluster'), text: <p>{t("Jobs run again, unless they or their apps are paused. Each job's missed-run policy decides about the runs missed meanwhile.")}</p>,
  work: async () => { await post('/api/v1/cluster/resume'); say(t('Cluster resumed')); await done(); },
});

export const killRun = (r: Run, done: () => void) => ask({
  title: t('Kill this run of {job}?', { job: r.job }), button: t('Kill'), danger: true,
  text: <p>{t('Its processes get SIGTERM, then SIGKILL after the grace period. The run is marked killed and will not be retried.')}</p>,
  work: async () => {
    await post(`/api/v1/runs/${r.id}/kill`, {}, onceKey());
    say(t('Kill requested'));
    done();
  },
});

export const deleteJob = (j: Job) => ask({
  title: t('Delete {job}?', { job: j.name }), button: t('Delete'), danger: true,
  text: <p>{t('It will not run again. Runs in progress finish; history is kept.')}</p>,
  work: async () => {
    await call(`/api/v1/jobs/${j.id}`, { method: 'DELETE', headers: { 'If-Match': `"${j.version}"` } });
    say(t('{job} deleted', { job: j.name }));
    go('/jobs');
  },
});

// Apps.

const appPath = (app: string) => `/api/v1/apps/${encodeURIComponent(app)}`;

/** How many jobs an app has, and what of it runs now. */
function AppNow({ app }: { app: string }) {
  const jobs = useGet<Page<Job>>(`/api/v1/jobs${query({ app, limit: 200 })}`, { every: 0 });
  const runs = useGet<Page<Run>>(`/api/v1/runs${query({ app, state: 'running', limit: 20 })}`, { every: 0 });
  const problem = jobs.problem ?? runs.problem;
  if (!jobs.data || !runs.data) return problem ? <ProblemBox problem={problem} /> : <Loading rows={2} />;

  const count = `${jobs.data.items.length}${jobs.data.next ? '+' : ''}`, running = [...new Set(runs.data.items.map((r) => r.job))];
  return (
    <p>
      <b>{t('{n} jobs', { n: count })}</b> · {running.length === 0 ? t('Nothing is running now.') : <>{t('Running now:')} <bdi>{running.slice(0, 8).join(', ')}{running.length > 8 || runs.data.next ? ' …' : ''}</bdi></>}
    </p>
  );
}

export const pauseApp = (app: string, done: () => void) => askPause(t('Pause the app {app}', { app }), `${appPath(app)}/pause`, () => {
  tell({ type: 'pause', data: { app } });
  say(t('{job} paused', { job: app }));
  done();
}, <AppNow app={app} />);

export const resumeApp = (app: string, done: () => unknown) => ask({
  title: t('Resume the app {app}?', { app }), button: t('Resume app'),
  text: <><AppNow app={app} /><p>{t("Jobs run again, unless they or the cluster are paused. Each job's missed-run policy decides about the runs missed meanwhile.")}</p></>,
  work: async () => {
    await post(`${appPath(app)}/resume`);
    tell({ type: 'pause', data: { app } });
    say(t('{job} resumed', { job: app }));
    await done();
  },
});

/** What can be done to an app as a whole: the buttons of a list that shows one. */
export function AppActions({ app }: { app: string }) {
  const pauses = useGet<Page<Pause>>('/api/v1/pauses', { every: 10_000, on: ['pause'] });
  const paused = pauses.data?.items.some((p) => p.scope === 'app' && p.app === app && !p.ended);
  if (!may('operator', app) || !pauses.data) return null;
  return (
    <>
      {paused ? <Button icon="play" work={() => resumeApp(app, pauses.reload)}>{t('Resume app')}</Button>
        : <Button icon="pause" work={() => pauseApp(app, () => void pauses.reload())}>{t('Pause app')}</Button>}
      <RerunFailed filter={{ app }} />
    </>
  );
}

// Failed runs of a filter, all of them once more.

export interface RerunFilter { job_id?: string; app?: string; node?: string; outcome?: string; from?: string; to?: string }
const day = 24 * 3600_000;
const rerunnable = ['', 'unsuccessful', ...unsuccessful] as string[];

/** A button that reruns what failed of a filter, if that could be anything. Without a beginning it is the last 24 hours. */
export function RerunFailed({ filter, done }: { filter: RerunFilter; done?: () => void }) {
  if (!rerunnable.includes(filter.outcome ?? '')) return null;
  return <Button icon="history" work={() => show(() => <RerunDialog filter={filter} done={done} />)}>{t('Rerun failed')}</Button>;
}

function RerunDialog({ filter, done }: { filter: RerunFilter; done?: () => void }) {
  const [between] = useState(() => ({ from: filter.from || new Date(now() - day).toISOString(), to: filter.to || new Date(now()).toISOString() }));
  const [begin, end] = range(between.from, between.to);
  const [would, setWould] = useState<Rerun>(), [problem, setProblem] = useState<Problem>();
  const [keys] = useState(() => new Map<string, Record<string, string>>()); // by cursor: a second press repeats the same requests
  const path = (dry: boolean, cursor = '') => `/api/v1/bulk/rerun${query({ ...filter, ...between, dry_run: dry, cursor })}`;
  useEffect(() => { post<Rerun>(path(true)).then(setWould, setProblem); }, []);

  const work = async () => {
    const close = closing();
    setProblem(undefined);
    let started = 0, refused = 0, cursor: string | undefined = '';
    try {
      while (cursor !== undefined) {
        if (!keys.has(cursor)) keys.set(cursor, onceKey());
        const r: Rerun = await post<Rerun>(path(false, cursor), {}, keys.get(cursor));
        started += r.started;
        refused += r.refused;
        cursor = r.next;
      }
      close();
      say(t('{n} runs started again', { n: started }) + (refused ? `, ${t('{n} refused', { n: refused })}` : ''), started === 0);
      done?.();
    } catch (err) { if (err instanceof Problem) setProblem(err); else throw err; }
  };

  return (
    <Dialog title={filter.app ? t('Rerun what failed in {app}?', { app: filter.app }) : t('Rerun what failed?')} close={closeDialog}>
      <div class="body">
        <p class="faint">{t('Scheduled {from} – {to}. Each run gets its original scheduled time.', { from: begin, to: end })}</p>
        {would ? <WouldRerun would={would} /> : !problem && <Loading rows={3} />}
        {problem && <ProblemBox problem={problem} />}
      </div>
      <footer><Button work={closeDialog}>{t('Cancel')}</Button><Button look="primary" icon="history" disabled={!would?.started} work={work}>{t('Rerun')}</Button></footer>
    </Dialog>
  );
}

function WouldRerun({ would }: { would: Rerun }) {
  if (would.items.length === 0) return <p><b>{t('Nothing failed in this range, or it has succeeded since.')}</b></p>;
  const of = new Map<string, number>(); // by job
  for (const i of would.items) if (i.result === 'changed') of.set(i.name ?? '', (of.get(i.name ?? '') ?? 0) + 1);
  const refused = would.items.filter((i) => i.result === 'refused');
  return (
    <>
      <p><b>{t('{n} scheduled times will run again.', { n: `${would.started}${would.next ? '+' : ''}` })}</b></p>
      <ul class="small">
        {[...of].sort((a, b) => b[1] - a[1]).slice(0, 12).map(([name, n]) => <li key={name}><bdi>{name}</bdi> ×{n}</li>)}
        {of.size > 12 && <li class="faint">{t('and {n} more', { n: of.size - 12 })}</li>}
        {refused.slice(0, 5).map((i) => <li key={i.run_id} class="faint"><bdi>{i.name ?? i.run_id}</bdi> {t('refused')}{i.why && `: ${sentence(i.why)}`}</li>)}
      </ul>
    </>
  );
}

/** What can be done to a job, as a list of buttons: for rows that have no room for them. */
export const jobActions = (j: Job) => show(() => (
  <Dialog title={j.name} close={closeDialog}>
    <div class="body sheet">
      <Button icon="bolt" work={() => { closeDialog(); return runNow(j, true); }}>{t('Run now')}</Button>
      {j.paused ? <Button icon="play" work={() => { closeDialog(); return resume(j); }}>{t('Resume')}</Button>
        : j.pause?.scope === 'app' ? <Button icon="play" work={() => resumeApp(j.app, () => undefined)}>{t('Resume app')}</Button>
        : !j.pause && <Button icon="pause" work={() => pauseJob(j)}>{t('Pause')}</Button>}
      <Button icon="question" work={() => { closeDialog(); go(`/jobs/${j.id}/why`); }}>{t('Why?')}</Button>
      {!j.at && <Button icon="history" work={async () => (await import('../screens/backfills')).openBackfill(j)}>{t('Backfill')}</Button>}
      {may('admin', j.app) && <Button icon="edit" work={() => { closeDialog(); go(`/jobs/${j.id}/edit`); }}>{t('Edit')}</Button>}
      <RerunFailed filter={{ job_id: j.id }} />
    </div>
  </Dialog>
));
