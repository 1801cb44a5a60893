import { useMemo, useState } from 'preact/hooks';
import { all, call, may, onceKey, post, Problem, query } from '../api';
import { alertSaid, otherSaid, t, word, type Text } from '../i18n';
import { upTo, useGet, usePages } from '../live';
import { write } from '../parts/actions';
import { Ago, ask, Badge, Button, Card, Choice, closeDialog, closing, Dialog, Empty, Field, Head, Loading, Notice, ProblemBox, Said, say, show, type Tone, When } from '../parts/basic';
import { useSomeRule } from '../parts/counts';
import { go, here, Link, setQuery, useOneOf } from '../router';
import type { Job, Page } from '../types';

// Alerts: what is wrong now, which rules find it, where it is told, and what is kept quiet.

interface Alert {
  id: string; state: 'firing' | 'resolved'; rule: string; event: Event; severity: Severity; app?: string; job_id?: string; job?: string; owner?: string; node?: string; run?: string;
  summary: string; first: string; last: string; seen: number; told?: string; silence?: string; resolved?: string; resolved_by?: string;
}
interface Summary { firing: number; deliveries: Record<string, number>; lost?: number; template_failures?: number }
interface Stamped { version: number; created: string; updated: string; updated_by: string; error?: string }
interface Rule extends Stamped {
  name: string; description?: string; disabled?: boolean; on: Event[]; apps?: string[]; jobs?: string[]; owner?: string; labels?: Record<string, string>; channels: string[]; severity: Severity; repeat?: string;
  late_start?: string; late_finish?: string; never_ran?: string; failures?: { count: number; within: string; per?: 'job' | 'app' | 'rule' }; node_gone?: string; backlog?: { tasks?: number; older_than?: string }; clock_skew?: string;
  title?: string; text?: string;
}
interface Channel extends Stamped {
  name: string; description?: string; type: Kind; disabled?: boolean; url?: string; headers?: Record<string, string>; sign?: string; body?: string; routing_key?: string;
  email?: { server: string; tls?: string; user?: string; password?: string; from: string; to?: string[]; to_owner?: boolean }; every?: string; wait?: string; rate?: number; timeout?: string; held?: string; failing?: { tries: number; since: string; said?: string };
}
interface Tested { channel: string; sent: boolean; said?: string }
interface Silence { id: string; app?: string; job?: string; rule?: string; until: string; reason: string; by: string; created: string; over: boolean }
interface Delivery { id: string; kind: string; channel?: string; target?: string; rule?: string; state: string; attempts: number; next?: string; events: number; items?: { what: string; summary: string; job_id?: string; job?: string }[]; said?: string; created: string; updated: string }

type Severity = 'info' | 'warning' | 'error' | 'critical';
const severities: Severity[] = ['info', 'warning', 'error', 'critical'];
const toneOf: Record<Severity, Tone> = { info: 'mute', warning: 'warn', error: 'bad', critical: 'bad' };
const severityText: Record<Severity, Text> = { info: 'info', warning: 'warning', error: 'error', critical: 'critical' };

const events = ['failed', 'recovered', 'lost', 'late_start', 'late_finish', 'never_ran', 'failures', 'node_gone', 'backlog', 'clock_skew', 'duplicate_names', 'folder_refused', 'expiring', 'oidc_unreachable', 'backup_old', 'started', 'succeeded'] as const;
type Event = (typeof events)[number];
const eventText: Record<Event, Text> = {
  failed: 'Run failed', recovered: 'Recovered', lost: 'Run lost', late_start: 'Started late', late_finish: 'Finished late', never_ran: 'Missed a run', failures: 'Repeated failures', node_gone: 'Node down', backlog: 'Backlog', clock_skew: 'Clock offset', duplicate_names: 'Nodes with the same name', folder_refused: 'Job folder refused', expiring: 'Token or certificate expiring', oidc_unreachable: 'Identity provider unreachable', backup_old: 'Backup overdue', started: 'Run started', succeeded: 'Run succeeded',
};
const kinds = ['webhook', 'slack', 'feishu', 'dingtalk', 'wecom', 'email', 'pagerduty', 'heartbeat'] as const;
type Kind = (typeof kinds)[number];
const kindText: Record<Kind, Text> = { webhook: 'Webhook', slack: 'Slack or Mattermost', feishu: 'Feishu', dingtalk: 'DingTalk', wecom: 'WeCom', email: 'Mail', pagerduty: 'PagerDuty', heartbeat: 'Heartbeat' };
const stateTone: Record<string, Tone> = { sent: 'good', failed: 'bad', pending: 'busy', sending: 'busy', silenced: 'mute', suppressed: 'mute' };
const stateText: Record<string, Text> = { sent: 'sent', failed: 'failed', pending: 'pending', sending: 'sending', silenced: 'silenced', suppressed: 'suppressed' };
const deliveryText: Record<string, Text> = { alert: 'Alert', test: 'Test', heartbeat: 'Heartbeat', ping: 'Ping' };
const alertStateText = (s: string) => (stateText[s] ? t(stateText[s]) : s);

const base = '/api/v1/alerts', enc = encodeURIComponent, most = 1000;
const views = ['now', 'rules', 'channels', 'silences', 'sent'] as const;
const viewText: Record<(typeof views)[number], Text> = { now: 'Alerts', rules: 'Rules', channels: 'Channels', silences: 'Silences', sent: 'Messages' };

export function Alerts({ item }: { item?: string }) {
  const view = item === undefined ? 'now' : views.find((v) => v === item);
  if (!view) return <><Head title={t('Alerts')} /><Empty icon="question" title={t('Page not found')}><Link class="button" to="/alerts">{t('Alerts')}</Link></Empty></>;
  return (
    <>
      <Head title={t('Alerts')} />
      <div class="filters"><Choice label={t('View')} value={view} set={(v) => go('/alerts' + (v === 'now' ? '' : '/' + v))} options={views.filter((v) => v !== 'sent' || may('operator')).map((value) => ({ value, text: t(viewText[value]) }))} /></div>
      {view === 'rules' ? <Rules /> : view === 'channels' ? <Channels /> : view === 'silences' ? <Silences /> : view === 'sent' ? <Sent /> : <Now />}
    </>
  );
}

function Now() {
  const all = useOneOf('state', ['all']) === 'all', job = here.value.search.get('job_id') ?? undefined;
  const path = `${base}${query({ state: all ? undefined : 'firing', job_id: job, limit: 100 })}`;
  const list = usePages<Alert>(path, (a) => a.id, { every: 10_000, on: ['alert'], always: true }), { items, more } = list, sum = useGet<Summary>(`${base}/summary`, { every: 15_000, on: ['alert'], always: true });
  const told = useSomeRule(), failed = sum.data?.deliveries.failed ?? 0, lost = sum.data?.lost ?? 0, templates = sum.data?.template_failures ?? 0, firing = sum.data?.firing ?? 0;
  return (
    <div class="stack">
      {failed > 0 && <Notice look="warn" action={may('operator') && <Link class="button" to="/alerts/sent?state=failed">{t('Show messages')}</Link>}><p>{t('{n} messages could not be sent.', { n: failed })}</p></Notice>}
      <Card title={all ? t('Alerts') : <>{t('Active alerts')} {firing > 0 && <span class="count">{firing.toLocaleString()}</span>}</>} more={<Choice label={t('Filter')} value={all ? 'all' : 'now'} set={(v) => setQuery({ state: v === 'all' ? 'all' : undefined })} options={[{ value: 'now', text: t('Active') }, { value: 'all', text: t('All') }]} />}>
        {list.problem && <ProblemBox problem={list.problem} again={list.reload} />}
        {list.loading ? <Loading /> : items.length === 0 && told === false ? !list.problem && <Empty icon="bell" title={t('Nobody is notified')}><p>{t('No alert rule is on, so nothing raises an alert, whatever fails.')}</p><Link class="button primary" to="/alerts/rules">{t('Set up alerts')}</Link></Empty>
          : items.length === 0 ? !list.problem && <Empty icon="check" title={all ? t('No alerts yet') : t('No active alerts')}><p>{t('Rules decide what raises an alert.')}</p><Link class="button" to="/alerts/rules">{t('Rules')}</Link></Empty> : (
          <div class="scroll"><table>
            <thead><tr><th>{t('Alert')}</th><th class="thin-hide">{t('Rule')}</th><th class="thin-hide">{t('Since')}</th><th class="num thin-hide">{t('Count')}</th><th class="thin-hide">{t('Notified')}</th><th><span class="unseen">{t('Actions')}</span></th></tr></thead>
            <tbody>{items.map((a) => (
              <tr key={a.id}>
                <td><Badge tone={a.state === 'resolved' ? 'good' : toneOf[a.severity]}>{a.state === 'resolved' ? t('resolved') : t(severityText[a.severity])}</Badge> <b>{a.run ? <Link to={`/runs/${a.run}`}><Said text={a.summary} by={alertSaid} /></Link> : <Said text={a.summary} by={alertSaid} />}</b>
                  <div class="faint small">{t(eventText[a.event] ?? 'Alerts')}{a.job_id && <> · <Link to={`/jobs/${a.job_id}`}><bdi>{a.app === 'default' ? a.job : `${a.app}/${a.job}`}</bdi></Link></>}{a.node && <> · {a.node}</>}<span class="thin-only"> · <Ago at={a.first} /></span>{a.resolved_by && <> · <bdi>{a.resolved_by}</bdi></>}</div></td>
                <td class="thin-hide"><bdi>{a.rule}</bdi></td><td class="nowrap thin-hide"><Ago at={a.first} /></td><td class="num thin-hide">{a.seen.toLocaleString()}</td>
                <td class="thin-hide">{a.silence ? <span class="tag">{t('silenced')}</span> : a.told ? <When at={a.told} /> : <span class="faint">—</span>}</td>
                <td class="num">{a.state === 'firing' && !a.silence && may('operator', a.app) && <Button look="quiet" work={() => show(() => <SilenceDialog app={a.app} job={a.job} rule={a.rule} done={() => void list.reload()} />)}>{t('Silence')}</Button>}</td>
              </tr>
            ))}</tbody>
          </table></div>
        )}
        {more && <div class="more-row"><Button work={more}>{t('Show older')}</Button></div>}
        {(lost > 0 || templates > 0) && <p class="in faint small">{t('Since the cluster was created:')} {[lost > 0 && t('{n} events were dropped because there were too many.', { n: lost }), templates > 0 && t('A template failed {n} times, so the default text was sent.', { n: templates })].filter(Boolean).join(' ')} {t("The nodes' logs have the details.")}</p>}
      </Card>
    </div>
  );
}

const scope = (r: Rule) => [...(r.apps ?? []), ...(r.jobs ?? []), ...(r.owner ? [r.owner] : []), ...Object.entries(r.labels ?? {}).map(([k, v]) => `${k}=${v}`)];

function Rules() {
  const list = useGet<Page<Rule>>(`${base}/rules`, { every: 15_000, on: ['change'], read: upTo(most) });
  const channels = useGet<Page<Channel>>(`${base}/channels`, { every: 15_000, read: upTo(most) }), failing = new Set(channels.data?.items.filter((c) => c.failing).map((c) => c.name));
  const items = list.data?.items ?? [], edit = (r?: Rule) => show(() => <RuleDialog rule={r} done={() => void list.reload()} />);
  return (
    <Card title={t('Rules')} more={may('admin') && <Button icon="plus" work={() => edit()}>{t('New rule')}</Button>}>
      {list.problem && <ProblemBox problem={list.problem} again={list.reload} />}
      {list.loading ? <Loading /> : items.length === 0 ? !list.problem && <Empty icon="warning" title={t('No rules yet')}><p>{t('A rule says which problems raise an alert, and which channels are notified.')}</p>{may('admin') && <Button icon="plus" look="primary" work={() => edit()}>{t('New rule')}</Button>}</Empty> : (
        <div class="scroll"><table><thead><tr><th>{t('Name')}</th><th>{t('Conditions')}</th><th class="thin-hide">{t('Scope')}</th><th>{t('Channels')}</th><th class="thin-hide">{t('Updated')}</th><th><span class="unseen">{t('Actions')}</span></th></tr></thead>
          <tbody>{items.map((r) => (
            <tr key={r.name}>
              <td><bdi><b>{r.name}</b></bdi> {r.disabled ? <Badge tone="mute">{t('off')}</Badge> : <Badge tone={toneOf[r.severity]}>{t(severityText[r.severity])}</Badge>}{r.description && <div class="faint small"><bdi>{r.description}</bdi></div>}{r.error && <div class="small bad-text">{r.error}</div>}</td>
              <td>{r.on.map((e) => t(eventText[e])).join(' · ')}</td><td class="thin-hide">{scope(r).length ? scope(r).map((s) => <span key={s} class="tag">{s}</span>) : <span class="faint">{t('all jobs')}</span>}</td>
              <td>{r.channels.map((c) => <span key={c} class="tag">{c}{failing.has(c) && <> <Badge tone="warn">{t('failing')}</Badge></>}</span>)}</td><td class="thin-hide"><Ago at={r.updated} /> <span class="faint small"><bdi>{r.updated_by}</bdi></span></td>
              <td class="num nowrap">{may('admin') && <><Button look="quiet" icon="edit" aria-label={t('Edit')} work={() => edit(r)} /><Button look="quiet" icon="trash" aria-label={t('Delete')} work={() => ask({ title: t('Delete the alert rule {name}?', { name: r.name }), button: t('Delete'), danger: true, text: <p>{t('It will raise no more alerts.')}</p>, work: async () => { await call(`${base}/rules/${enc(r.name)}`, { method: 'DELETE' }); await list.reload(); } })} /></>}</td>
            </tr>
          ))}</tbody></table></div>
      )}
    </Card>
  );
}

/** What stands in a text between commas. */
const listed = (s: string) => s.split(',').map((x) => x.trim()).filter(Boolean);
const pairsOf = (s: string) => Object.fromEntries(listed(s).map((x) => { const i = x.indexOf('='); return i < 0 ? [x, ''] : [x.slice(0, i), x.slice(i + 1)]; }));
const pairsText = (m?: Record<string, string>) => Object.entries(m ?? {}).map(([k, v]) => `${k}=${v}`).join(', ');

/** Leaves out what only the server writes, and what is empty. */
function bodyOf<T extends Stamped>(x: Partial<T>): Record<string, unknown> {
  const { version, created, updated, updated_by, error, held, failing, name, ...rest } = x as Record<string, unknown>;
  return Object.fromEntries(Object.entries(rest).filter(([, v]) => v !== '' && v !== undefined && v !== false && !(Array.isArray(v) && v.length === 0) && !(v && typeof v === 'object' && !Array.isArray(v) && Object.keys(v).length === 0)));
}

/** What is typed into a dialog, and what is wrong with it. */
function useDraft<T extends Stamped & { name: string }>(was: T | undefined, draft: Partial<T>, kind: string, done: (name: string) => void) {
  const [d, setD] = useState<Partial<T>>(draft), [problem, setProblem] = useState<Problem>();
  const set = (more: Partial<T>) => setD((old) => ({ ...old, ...more }));
  const error = (f: string) => problem?.errors.find((e) => e.field === f || e.field.startsWith(f + '[') || e.field.startsWith(f + '.'));
  const known = new Set<string>();
  const of = (f: string) => { known.add(f); return error(f); };
  const save = async () => {
    setProblem(undefined);
    const close = closing();
    try { await write(`${base}/${kind}/${enc(d.name ?? '')}`, bodyOf<T>(d), was); close(); say(t('{job} saved', { job: d.name ?? '' })); done(d.name ?? ''); } catch (err) { if (err instanceof Problem) setProblem(err); else throw err; }
  };
  /** Sends a sample before anything is saved. */
  const test = async () => {
    setProblem(undefined);
    try {
      const body = { ...bodyOf<T>(d), ...(d.name && { name: d.name }) };
      const r = await post<{ channels?: Tested[] } & Tested>(`${base}/test-${kind.slice(0, -1)}`, body), all = r.channels ?? [{ ...r, channel: d.name || t('New channel') }];
      for (const c of all) say(c.sent ? t('Test to "{job}" sent', { job: c.channel }) : t('Test to "{job}" failed', { job: c.channel }), !c.sent, c.said);
    } catch (err) { if (err instanceof Problem) setProblem(err); else throw err; }
  };
  /** What is wrong and stands at no field. */
  const left = () => (problem && !problem.errors.some((e) => [...known].some((f) => e.field === f || e.field.startsWith(f + '[') || e.field.startsWith(f + '.'))) ? <ProblemBox problem={problem} /> : null);
  return { d, set, of, save, test, left };
}

const Input = ({ id, value, set, mono, ...rest }: { id: string; value?: string | number; set: (v: string) => void; mono?: boolean; placeholder?: string; type?: string; autoFocus?: boolean; list?: string }) => (
  <input id={id} class={mono ? 'mono' : ''} value={value ?? ''} onInput={(e) => set(e.currentTarget.value)} {...rest} />
);

const usual: Partial<Rule> = { name: '', on: ['failed', 'lost', 'never_ran'], channels: [], severity: 'error' };

/** Opens the rule that is about a job alone, or a new one that is filled in for it. */
export async function alertOf(j: Job) {
  const jobs = [`${j.app}/${j.name}`], [rules, channels] = await Promise.all([all<Rule>(`${base}/rules`, most), all<Channel>(`${base}/channels`, most)]);
  const rule = rules.find((r) => r.jobs?.length === 1 && r.jobs[0] === jobs[0]);
  show(() => <RuleDialog rule={rule} draft={rule ?? { ...usual, name: jobs[0], jobs, channels: channels.length === 1 ? [channels[0].name] : [] }} done={() => undefined} />);
}

function RuleDialog({ rule, draft, done }: { rule?: Rule; draft?: Partial<Rule>; done: () => void }) {
  const { d, set, of, save, test, left } = useDraft<Rule>(rule, draft ?? rule ?? usual, 'rules', done);
  const back = (draft: Partial<Rule>) => show(() => <RuleDialog rule={rule} draft={draft} done={done} />);
  const newChannel = () => show(() => <ChannelDialog leave={() => back(d)} done={(name) => back({ ...d, channels: [...(d.channels ?? []), name] })} />);
  const channels = useGet<Page<Channel>>(`${base}/channels`, { every: 0, read: upTo(most) });
  const [texts, setTexts] = useState({ apps: (d.apps ?? []).join(', '), jobs: (d.jobs ?? []).join(', '), labels: pairsText(d.labels) });
  const has = (e: Event) => d.on?.includes(e) ?? false;
  const flip = <K extends string>(list: K[] | undefined, k: K) => (list?.includes(k) ? list.filter((x) => x !== k) : [...(list ?? []), k]);
  const fail = d.failures ?? { count: 3, within: '1h' }, late = d.backlog ?? {};
  return (
    <Dialog title={rule ? rule.name : t('New rule')} close={closeDialog} wide>
      <div class="body">
        <div class="fields">
          {!rule && <Field id="r-name" label={t('Name')} error={of('name')}><Input id="r-name" autoFocus value={d.name} set={(name) => set({ name })} /></Field>}
          <Field id="r-description" label={t('Description')} error={of('description')}><Input id="r-description" value={d.description} set={(description) => set({ description })} /></Field>
        </div>
        <fieldset class="boxes"><legend>{t('Conditions')}</legend>{events.map((e) => <label key={e} class="check"><input type="checkbox" checked={has(e)} onChange={() => set({ on: flip(d.on, e), ...(has(e) ? { [e]: undefined } : e === 'failures' && { failures: fail }) })} />{t(eventText[e])}</label>)}{of('on') && <p class="error"><Said text={of('on')!} /></p>}</fieldset>
        <div class="fields">
          {has('late_start') && <Field id="r-late-start" label={t('Delay of at least')} error={of('late_start')} hint="1m"><Input id="r-late-start" mono value={d.late_start} set={(late_start) => set({ late_start })} placeholder="1m" /></Field>}
          {has('late_finish') && <Field id="r-late-finish" label={t('Must finish within')} error={of('late_finish')}><Input id="r-late-finish" mono value={d.late_finish} set={(late_finish) => set({ late_finish })} placeholder="1h" /></Field>}
          {has('never_ran') && <Field id="r-never" label={t('Expected at least every')} error={of('never_ran')} hint={t('Leave empty to count only missed runs.')}><Input id="r-never" mono value={d.never_ran} set={(never_ran) => set({ never_ran })} placeholder="25h" /></Field>}
          {has('failures') && <>
            <Field id="r-count" label={t('Failures')} error={of('failures')}><Input id="r-count" type="number" value={fail.count} set={(v) => set({ failures: { ...fail, count: Number(v) } })} /></Field>
            <Field id="r-within" label={t('Within')}><Input id="r-within" mono value={fail.within} set={(within) => set({ failures: { ...fail, within } })} /></Field>
            <Field id="r-per" label={t('Count per')}><select id="r-per" value={fail.per ?? 'job'} onChange={(e) => set({ failures: { ...fail, per: e.currentTarget.value as 'job' } })}><option value="job">{t('each job')}</option><option value="app">{t('each app')}</option><option value="rule">{t('all together')}</option></select></Field>
          </>}
          {has('node_gone') && <Field id="r-gone" label={t('Down for')} error={of('node_gone')}><Input id="r-gone" mono value={d.node_gone} set={(node_gone) => set({ node_gone })} placeholder="30s" /></Field>}
          {has('backlog') && <>
            <Field id="r-tasks" label={t('Overdue runs')} error={of('backlog')}><Input id="r-tasks" type="number" value={late.tasks} set={(v) => set({ backlog: { ...late, ...(v ? { tasks: Number(v) } : { tasks: undefined }) } })} placeholder="100" /></Field>
            <Field id="r-older" label={t('Overdue by')}><Input id="r-older" mono value={late.older_than} set={(older_than) => set({ backlog: { ...late, older_than: older_than || undefined } })} placeholder="1m" /></Field>
          </>}
          {has('clock_skew') && <Field id="r-skew" label={t('Offset of at least')} error={of('clock_skew')}><Input id="r-skew" mono value={d.clock_skew} set={(clock_skew) => set({ clock_skew })} placeholder="1s" /></Field>}
        </div>
        <fieldset class="boxes"><legend>{t('Channels')}</legend>
          {channels.data?.items.map((c) => <label key={c.name} class="check"><input type="checkbox" checked={d.channels?.includes(c.name)} onChange={() => set({ channels: flip(d.channels, c.name) })} /><bdi>{c.name}</bdi> <span class="faint small">{t(kindText[c.type])}</span>{c.failing && <Badge tone="warn">{t('failing')}</Badge>}</label>)}
          {channels.data?.items.length === 0 && <p class="faint">{t('No channels yet. Create one first.')}</p>}
          {channels.data && <Button look="quiet" icon="plus" work={newChannel}>{t('New channel')}</Button>}
          {of('channels') && <p class="error">{d.channels?.length ? <Said text={of('channels')!} /> : t('Choose at least one channel.')}</p>}</fieldset>
        <div class="field"><span class="label">{t('Severity')}</span><Choice label={t('Severity')} value={d.severity ?? 'error'} set={(severity) => set({ severity })} options={severities.map((value) => ({ value, text: t(severityText[value]) }))} /></div>
        <div class="fields">
          <Field id="r-apps" label={t('Apps')} error={of('apps')} hint={t('Separate names with commas. Leave empty for all.')}><Input id="r-apps" value={texts.apps} set={(v) => { setTexts({ ...texts, apps: v }); set({ apps: listed(v) }); }} /></Field>
          <Field id="r-jobs" label={t('Jobs')} error={of('jobs')} hint={t('Write app/name. * matches anything.')}><Input id="r-jobs" value={texts.jobs} set={(v) => { setTexts({ ...texts, jobs: v }); set({ jobs: listed(v) }); }} placeholder="billing/*-nightly" /></Field>
          <Field id="r-owner" label={t('Owner')} error={of('owner')}><Input id="r-owner" value={d.owner} set={(owner) => set({ owner })} /></Field>
          <Field id="r-labels" label={t('Labels')} error={of('labels')}><Input id="r-labels" value={texts.labels} set={(v) => { setTexts({ ...texts, labels: v }); set({ labels: pairsOf(v) }); }} placeholder="team=data" /></Field>
          <Field id="r-repeat" label={t('Repeat every')} error={of('repeat')}><Input id="r-repeat" mono value={d.repeat} set={(repeat) => set({ repeat })} placeholder="4h" /></Field>
        </div>
        <details><summary>{t('Message texts')}</summary><div class="stack">
          <Field id="r-title" label={t('Title')} error={of('title')} hint={t('A template. Leave empty for the default.')}><Input id="r-title" mono value={d.title} set={(title) => set({ title })} /></Field>
          <Field id="r-text" label={t('Text')} error={of('text')}><textarea id="r-text" class="mono" rows={4} value={d.text ?? ''} onInput={(e) => set({ text: e.currentTarget.value })} /></Field>
        </div></details>
        <label class="check"><input type="checkbox" checked={!d.disabled} onChange={() => set({ disabled: !d.disabled })} />{t('Rule enabled')}</label>
        {left()}
      </div>
      <footer><Button work={closeDialog}>{t('Cancel')}</Button><Button work={test}>{t('Test')}</Button><Button look="primary" disabled={!d.name?.trim()} work={save}>{t('Save')}</Button></footer>
    </Dialog>
  );
}

function Channels() {
  const list = useGet<Page<Channel>>(`${base}/channels`, { every: 15_000, on: ['change'], read: upTo(most) });
  const items = list.data?.items ?? [], edit = (c?: Channel) => show(() => <ChannelDialog channel={c} done={() => void list.reload()} />);
  const test = async (c: Channel) => {
    const r = await post<{ sent: boolean; said?: string; took_ms: number }>(`${base}/channels/${enc(c.name)}/test`);
    say(r.sent ? t('Test to "{job}" sent', { job: c.name }) : t('Test to "{job}" failed', { job: c.name }), !r.sent, r.said);
    await list.reload(); // whether it is failing
  };
  return (
    <Card title={t('Channels')} more={may('admin') && <Button icon="plus" work={() => edit()}>{t('New channel')}</Button>}>
      {list.problem && <ProblemBox problem={list.problem} again={list.reload} />}
      {list.loading ? <Loading /> : items.length === 0 ? !list.problem && <Empty icon="link" title={t('No channels yet')}><p>{t('A channel is where alerts are sent: a chat, mail, a webhook or a pager.')}</p>{may('admin') && <Button icon="plus" look="primary" work={() => edit()}>{t('New channel')}</Button>}</Empty> : (
        <div class="scroll"><table><thead><tr><th>{t('Name')}</th><th>{t('Kind')}</th><th class="thin-hide">{t('Target')}</th><th class="thin-hide">{t('Updated')}</th><th><span class="unseen">{t('Actions')}</span></th></tr></thead>
          <tbody>{items.map((c) => (
            <tr key={c.name}>
              <td><bdi><b>{c.name}</b></bdi> {c.disabled && <Badge tone="mute">{t('off')}</Badge>}{c.held && <Badge tone="bad" title={c.held}>{t('suppressed')}</Badge>}{c.failing && <Badge tone="warn" title={c.failing.said}>{t('failing')}</Badge>}{c.description && <div class="faint small"><bdi>{c.description}</bdi></div>}{c.error && <div class="small bad-text">{c.error}</div>}{c.failing && <div class="small bad-text"><Ago at={c.failing.since} /> · {t('{n} failed attempts', { n: c.failing.tries })} <bdi>{c.failing.said}</bdi></div>}</td>
              <td>{t(kindText[c.type])}</td><td class="thin-hide mono small">{c.email ? (c.email.to ?? []).join(', ') || t("the job's owner") : c.url}</td><td class="thin-hide"><Ago at={c.updated} /> <span class="faint small"><bdi>{c.updated_by}</bdi></span></td>
              <td class="num nowrap">{may('operator') && <Button work={() => test(c)}>{t('Test')}</Button>}{may('admin') && <><Button look="quiet" icon="edit" aria-label={t('Edit')} work={() => edit(c)} /><Button look="quiet" icon="trash" aria-label={t('Delete')} work={() => ask({ title: t('Delete the alert channel {name}?', { name: c.name }), button: t('Delete'), danger: true, text: <p>{t('No more alerts will be sent to it.')}</p>, work: async () => { await call(`${base}/channels/${enc(c.name)}`, { method: 'DELETE' }); await list.reload(); } })} /></>}</td>
            </tr>
          ))}</tbody></table></div>
      )}
    </Card>
  );
}

const secretHint = '{{secret.NAME}}';

function ChannelDialog({ channel, leave = closeDialog, done }: { channel?: Channel; leave?: () => void; done: (name: string) => void }) {
  const { d, set, of, save, test, left } = useDraft<Channel>(channel, channel ?? { name: '', type: 'webhook' }, 'channels', done);
  const [to, setTo] = useState((d.email?.to ?? []).join(', ')), [headers, setHeaders] = useState(pairsText(d.headers));
  const type = d.type ?? 'webhook', mail = d.email ?? { server: '', from: '' };
  const setMail = (more: Partial<typeof mail>) => set({ email: Object.fromEntries(Object.entries({ ...mail, ...more }).filter(([, v]) => v !== '' && v !== undefined && v !== false)) as unknown as Channel['email'] });
  return (
    <Dialog title={channel ? channel.name : t('New channel')} close={leave} wide>
      <div class="body">
        <div class="fields">
          {!channel && <Field id="c-name" label={t('Name')} error={of('name')}><Input id="c-name" autoFocus value={d.name} set={(name) => set({ name })} /></Field>}
          <Field id="c-type" label={t('Kind')} error={of('type')}><select id="c-type" value={type} onChange={(e) => set({ type: e.currentTarget.value as Kind, url: undefined, email: undefined, routing_key: undefined, sign: undefined, headers: undefined, body: undefined, every: undefined })}>{kinds.map((k) => <option key={k} value={k}>{t(kindText[k])}</option>)}</select></Field>
          <Field id="c-description" label={t('Description')} error={of('description')}><Input id="c-description" value={d.description} set={(description) => set({ description })} /></Field>
        </div>
        {type === 'email' ? (
          <div class="fields">
            <Field id="c-server" label={t('Mail server')} error={of('email.server') ?? of('email')}><Input id="c-server" mono value={mail.server} set={(server) => setMail({ server })} placeholder="smtp.example.com:587" /></Field>
            <Field id="c-tls" label="TLS" error={of('email.tls')}><select id="c-tls" value={mail.tls ?? 'starttls'} onChange={(e) => setMail({ tls: e.currentTarget.value })}><option value="starttls">STARTTLS</option><option value="tls">TLS</option><option value="none">{t('none')}</option></select></Field>
            <Field id="c-user" label={t('User')} error={of('email.user')}><Input id="c-user" value={mail.user} set={(user) => setMail({ user })} /></Field>
            <Field id="c-password" label={t('Password')} error={of('email.password')} hint={secretHint}><Input id="c-password" mono value={mail.password} set={(password) => setMail({ password })} placeholder={secretHint} /></Field>
            <Field id="c-from" label={t('From')} error={of('email.from')}><Input id="c-from" value={mail.from} set={(from) => setMail({ from })} placeholder="go-crontab@example.com" /></Field>
            <Field id="c-to" label={t('To')} error={of('email.to')} hint={t('Separate addresses with commas.')}><Input id="c-to" value={to} set={(v) => { setTo(v); setMail({ to: listed(v).length ? listed(v) : undefined }); }} /></Field>
            <label class="check"><input type="checkbox" checked={mail.to_owner ?? false} onChange={() => setMail({ to_owner: !mail.to_owner })} />{t("Send to the job's owner instead, if it is a mail address")}</label>
          </div>
        ) : <>
          <Field id="c-url" label={t('URL')} error={of('url')} hint={t('To keep it secret, store the whole address as a secret and enter {{secret.NAME}}.')}><Input id="c-url" mono value={d.url} set={(url) => set({ url })} placeholder={type === 'pagerduty' ? 'https://events.pagerduty.com/v2/enqueue' : 'https://…'} /></Field>
          <div class="fields">
            {(type === 'webhook' || type === 'feishu' || type === 'dingtalk') && <Field id="c-sign" label={t('Signing key')} error={of('sign')} hint={secretHint}><Input id="c-sign" mono value={d.sign} set={(sign) => set({ sign })} placeholder={secretHint} /></Field>}
            {type === 'pagerduty' && <Field id="c-key" label={t('Integration key')} error={of('routing_key')} hint={secretHint}><Input id="c-key" mono value={d.routing_key} set={(routing_key) => set({ routing_key })} placeholder={secretHint} /></Field>}
            {type === 'heartbeat' && <Field id="c-every" label={t('Call interval')} error={of('every')}><Input id="c-every" mono value={d.every} set={(every) => set({ every })} placeholder="1m" /></Field>}
            {type === 'webhook' && <Field id="c-headers" label={t('Headers')} error={of('headers')}><Input id="c-headers" mono value={headers} set={(v) => { setHeaders(v); set({ headers: pairsOf(v) }); }} placeholder="X-Team=ops" /></Field>}
          </div>
          {type === 'webhook' && <Field id="c-body" label={t('Body')} error={of('body')} hint={t('A template. Leave empty for the default.')}><textarea id="c-body" class="mono" rows={3} value={d.body ?? ''} onInput={(e) => set({ body: e.currentTarget.value })} /></Field>}
        </>}
        <label class="check"><input type="checkbox" checked={!d.disabled} onChange={() => set({ disabled: !d.disabled })} />{t('Channel enabled')}</label>
        {left()}
      </div>
      <footer><Button work={leave}>{t('Cancel')}</Button><Button work={test}>{t('Test')}</Button><Button look="primary" disabled={!d.name?.trim()} work={save}>{t('Save')}</Button></footer>
    </Dialog>
  );
}

function Silences() {
  const all = here.value.search.get('over') === 'true';
  const list = useGet<Page<Silence>>(`${base}/silences${query({ over: all })}`, { every: 15_000, on: ['change'], read: upTo(most) });
  const items = list.data?.items ?? [];
  return (
    <Card title={t('Silences')} more={<><label class="check small"><input type="checkbox" checked={all} onChange={() => setQuery({ over: all ? undefined : 'true' })} />{t('Include ended silences')}</label>{may('operator') && <Button icon="plus" work={() => show(() => <SilenceDialog done={() => void list.reload()} />)}>{t('New silence')}</Button>}</>}>
      {list.problem && <ProblemBox problem={list.problem} again={list.reload} />}
      {list.loading ? <Loading rows={2} /> : items.length === 0 ? !list.problem && <Empty icon="play" title={t('No silences')}><p>{t('A silence stops notifications for a while. Its alerts are still recorded.')}</p></Empty> : (
        <table><tbody>{items.map((s) => (
          <tr key={s.id}>
            <td>{[s.app && `${t('App')} ${s.app}`, s.job && `${t('Job')} ${s.job}`, s.rule && `${t('Rule')} ${s.rule}`].filter(Boolean).map((x) => <span key={String(x)} class="tag"><bdi>{x}</bdi></span>)}{!s.app && !s.job && !s.rule && <b>{t('Everything')}</b>}</td>
            <td><bdi>{s.reason}</bdi><div class="faint small">{s.by} · <Ago at={s.created} /> · {t('until')} <When at={s.until} /></div></td>
            <td class="num">{s.over ? <span class="faint">{t('ended')}</span> : may('operator', s.app) && <Button work={async () => { await call(`${base}/silences/${s.id}`, { method: 'DELETE' }); await list.reload(); }}>{t('End silence')}</Button>}</td>
          </tr>
        ))}</tbody></table>
      )}
    </Card>
  );
}

function SilenceDialog({ done, ...of }: { app?: string; job?: string; rule?: string; done: () => void }) {
  const [d, setD] = useState({ app: of.app ?? '', job: of.job ?? '', rule: of.rule ?? '', until: '2h', reason: '' }), [problem, setProblem] = useState<Problem>();
  const error = (f: string) => problem?.errors.find((x) => x.field === f), set = (more: Partial<typeof d>) => setD({ ...d, ...more });
  const key = useMemo(onceKey, [d]); // who presses again means the same silence
  const work = async () => {
    const close = closing();
    try {
      await post(`${base}/silences`, Object.fromEntries(Object.entries(d).filter(([, v]) => v.trim()).map(([k, v]) => [k, v.trim()])), key);
      close();
      done();
    } catch (err) { if (err instanceof Problem) setProblem(err); else throw err; }
  };
  return (
    <Dialog title={t('New silence')} close={closeDialog}>
      <div class="body">
        <div class="fields">{(['app', 'job', 'rule'] as const).map((f) => <Field key={f} id={'s-' + f} label={t(f === 'app' ? 'App' : f === 'job' ? 'Job' : 'Rule')} error={error(f)}><Input id={'s-' + f} value={d[f]} set={(v) => set({ [f]: v })} /></Field>)}</div>
        <p class="faint small">{t('Empty fields match everything.')}</p>
        <div class="field"><label for="s-until">{t('Until')}</label><div class="row"><Choice label={t('Until')} value={d.until} set={(until) => set({ until })} options={['1h', '2h', '8h', '24h'].map((value) => ({ value, text: value }))} /><input id="s-until" class="short mono" value={d.until} onInput={(e) => set({ until: e.currentTarget.value })} /></div>{error('until') && <p class="error"><Said text={error('until')!} /></p>}</div>
        <Field id="s-reason" label={t('Reason')} error={error('reason')}><Input id="s-reason" autoFocus value={d.reason} set={(reason) => set({ reason })} /></Field>
        {problem && problem.errors.length === 0 && <ProblemBox problem={problem} />}
      </div>
      <footer><Button work={closeDialog}>{t('Cancel')}</Button><Button look="primary" work={work}>{t('Silence')}</Button></footer>
    </Dialog>
  );
}

function Sent() {
  const state = useOneOf('state', Object.keys(stateText));
  const list = useGet<Page<Delivery>>(`${base}/deliveries${query({ state, limit: 100 })}`, { every: 5000, always: true });
  const items = list.data?.items ?? [];
  return (
    <Card title={t('Messages')} more={<select aria-label={t('State')} value={state} onChange={(e) => setQuery({ state: e.currentTarget.value })}><option value="">{t('Any state')}</option>{Object.keys(stateText).map((s) => <option key={s} value={s}>{alertStateText(s)}</option>)}</select>}>
      {list.problem && <ProblemBox problem={list.problem} again={list.reload} />}
      {list.loading ? <Loading /> : items.length === 0 ? !list.problem && <Empty icon="link" title={t('No messages yet')}><p>{t('Messages to channels appear here once a rule raises an alert.')}</p></Empty> : (
        <div class="scroll"><table class="stacked"><thead><tr><th>{t('Time')}</th><th>{t('Channel')}</th><th>{t('Alerts')}</th><th>{t('State')}</th></tr></thead>
          <tbody>{items.map((d) => (
            <tr key={d.id}><td class="nowrap"><When at={d.updated} /></td><td><bdi>{d.channel ?? d.target}</bdi><div class="faint small">{d.rule ?? (d.kind === 'ping' && t('Ping'))}</div></td>
              <td>{(d.items ?? []).slice(0, 3).map((x, i) => <div key={i}>{x.job_id ? <Link to={`/jobs/${x.job_id}`}><Said text={x.summary} by={alertSaid} /></Link> : <Said text={x.summary} by={alertSaid} />}</div>)}{d.events > 3 && <span class="faint small">{t('and {n} more', { n: d.events - 3 })}</span>}{!d.items?.length && <span class="faint">{word(deliveryText, d.kind)}</span>}</td>
              <td>{d.state === 'pending' && d.attempts > 0 ? <Badge tone="warn">{t('retrying, {n} failed', { n: d.attempts })}</Badge> : <><Badge tone={stateTone[d.state] ?? 'mute'}>{alertStateText(d.state)}</Badge>{d.attempts > 1 && <span class="faint small"> ×{d.attempts}</span>}</>}{d.said && <div class="faint small"><Said text={d.said} by={otherSaid} /></div>}</td></tr>
          ))}</tbody></table></div>
      )}
    </Card>
  );
}
