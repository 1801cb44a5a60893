import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call, may, post, Problem } from '../api';
import { otherSaid, t, type Text } from '../i18n';
import { useGet } from '../live';
import { askPause, resumeCluster } from '../parts/actions';
import { Ago, ask, Badge, Button, Card, closeDialog, closing, copy, Dialog, Empty, Field, Head, Loading, Notice, ProblemBox, Said, say, show, Tabs, When } from '../parts/basic';
import { Diff } from '../parts/diff';
import { keepFields, keepWords, useRetention, type Rule } from '../parts/keep';
import { go, Link } from '../router';
import type { Change, Cluster, Page, Pause } from '../types';
import { SettingsPart } from './activity';
import { AppLimitsCard } from './limits';

// What of the whole cluster is set: what it is, who may change it, and how. Each change is looked at once more before it
// is made.

const tabs: { id: string; text: Text; admin?: boolean }[] = [
  { id: 'general', text: 'General' }, { id: 'retention', text: 'Retention' }, { id: 'pauses', text: 'Pauses' }, { id: 'calendars', text: 'Calendars' }, { id: 'groups', text: 'Groups' },
  { id: 'secrets', text: 'Secrets' }, { id: 'tokens', text: 'Tokens', admin: true }, { id: 'logins', text: 'Sign-ins' },
];

export function Settings({ tab = 'general', item }: { tab?: string; item?: string }) {
  const known = tabs.some((x) => x.id === tab);
  return (
    <>
      <Head title={t('Settings')} />
      <Tabs current={tab} items={tabs.filter((x) => !x.admin || may('admin')).map(({ id, text }) => ({ id, to: id === 'general' ? '/settings' : `/settings/${id}`, text: t(text) }))} />
      {!known ? <Empty icon="question" title={t('Page not found')}><Link class="button" to="/settings">{t('Settings')}</Link></Empty>
        : tab === 'general' ? <General /> : tab === 'retention' ? <Retention /> : <SettingsPart tab={tab} item={item} />}
    </>
  );
}

function General() {
  const c = useGet<Cluster>('/api/v1/cluster', { every: 10_000, on: ['node'] });
  useEffect(() => { // a link to a part of it
    const id = location.hash.slice(1);
    if (tabs.some((x) => x.id === id)) return go(`/settings/${id}`, 'replace'); // it has its own page since
    if (c.data && id) document.getElementById(id)?.scrollIntoView({ block: 'start' });
  }, [!!c.data]);
  return (
    <div class="stack">
      {c.problem && <ProblemBox problem={c.problem} again={c.reload} />}
      <Pausing />
      <AppLimitsCard />
      <Handlers />
      <Log sessions={c.data?.sessions ?? []} />
      {c.data ? <Facts c={c.data} /> : !c.problem && <Loading rows={3} />}
    </div>
  );
}

/** Who may change it, and whether you may. */
const Who = ({ text, role, ok }: { text: Text; role: 'operator' | 'admin'; ok: boolean }) => <p class="in faint small who">{ok ? t(text) : t('Needs {role} role', { role: t(role) })}</p>;

function Pausing() {
  const list = useGet<Page<Pause>>('/api/v1/pauses', { every: 10_000, on: ['pause'] });
  const live = list.data?.items.filter((p) => !p.ended) ?? [], all = live.find((p) => p.scope === 'cluster'), apps = live.filter((p) => p.scope === 'app').length, can = may('operator');
  return (
    <Card title={t('Cluster pause')} more={can && list.data && (all
      ? <Button icon="play" work={() => resumeCluster(list.reload)}>{t('Resume cluster')}</Button>
      : <Button icon="pause" work={() => askPause(t('Pause the whole cluster'), '/api/v1/cluster/pause', () => { say(t('Cluster paused')); void list.reload(); })}>{t('Pause cluster')}</Button>)}>
      {list.problem && <ProblemBox problem={list.problem} again={list.reload} />}
      {list.data && (
        <div class="in stack">
          {all ? <Notice look="warn" icon="pause"><b>{t('The whole cluster is paused')}</b><p>{all.reason && <bdi>{all.reason} · </bdi>}{all.by && t('by {who}', { who: all.by })} · <Ago at={all.since} />{all.until && <> · {t('until')} <When at={all.until} /></>}</p></Notice>
            : <p>{t('The cluster is not paused. Jobs run as scheduled.')}</p>}
          {apps > 0 && <p><Link to="/settings/pauses">{t('{n} apps are paused', { n: apps })}</Link></p>}
        </div>
      )}
      <Who text="Cluster operators can change this." role="operator" ok={can} />
    </Card>
  );
}

function Retention() {
  const { data, problem, loading, reload } = useRetention();
  const all = data?.items.find((r) => r.scope === 'cluster'), apps = data?.items.filter((r) => r.scope === 'app') ?? [], w = data?.work;
  const edit = (rule: Rule, fresh = false) => show(() => <RuleDialog key={rule.app ?? ''} rule={rule} fresh={fresh} edit={edit} done={() => void reload()} />);
  const row = (r: Rule) => (
    <tr key={r.app ?? ''}>
      <td><b>{r.scope === 'cluster' ? t('The whole cluster') : <Link to={`/jobs?app=${encodeURIComponent(r.app!)}`}><bdi>{r.app}</bdi></Link>}</b></td>
      <td><Words rule={r} /></td>
      <td class="num nowrap">{may('admin', r.app) && <Button look="quiet" icon="edit" aria-label={t('Edit the rule of {what}', { what: r.app ?? t('The whole cluster') })} work={() => edit(r)} />}</td>
    </tr>
  );
  return (
    <section id="retention"><Card title={t('Retention')} more={may('admin') && data && <Button icon="plus" work={() => edit({ scope: 'app', app: '' }, true)}>{t('New app rule')}</Button>}>
      {problem && <ProblemBox problem={problem} again={reload} />}
      {loading && <Loading rows={2} />}
      {data && <table><tbody>{row(all ?? { scope: 'cluster' })}{apps.map(row)}</tbody></table>}
      {w && w.failures > 0 && <div class="in"><Notice look="bad"><b>{t('The archive command fails, so no runs are deleted')}</b>{w.error && <p class="lines"><Said text={w.error} by={otherSaid} /></p>}<p class="faint small">{t('{n} times in a row', { n: w.failures })}{w.error_at && <> · <Ago at={w.error_at} /></>}</p></Notice></div>}
      {data && <p class="in faint small">{t('Job settings override app settings, which override cluster settings.')}
        {w && <> {t('{n} runs were deleted so far', { n: w.removed.toLocaleString() })}{w.archived > 0 && `, ${t('{n} archived', { n: w.archived.toLocaleString() })}`}{w.ended ? <>; {t('all jobs were checked')} <Ago at={w.ended} />{t('.')}</> : `; ${t('not all jobs were checked yet.')}`} <Link to="/audit?kind=retention">{t('Change history')}</Link></>}</p>}
      <Who text="Cluster admins can change all rules, app admins the rule of their app." role="admin" ok={may('admin')} />
    </Card></section>
  );
}

function Words({ rule }: { rule: Rule }) {
  const said = keepFields.filter((f) => rule[f] !== undefined);
  return (
    <ul class="keep">
      {said.map((f) => <li key={f}>{keepWords(f, rule)}</li>)}
      {rule.archive && <li>{t('Runs are deleted only after the archive command has stored them')}</li>}
      {!said.some((f) => f !== 'failures') && <li class="faint">{rule.scope === 'cluster' ? t('No other limit: all runs are kept') : t('Everything else follows the cluster rule')}</li>}
    </ul>
  );
}

function RuleDialog({ rule, fresh, edit, done }: { rule: Rule; fresh: boolean; edit: (rule: Rule) => void; done: () => void }) {
  const text = (v: unknown) => (v === undefined ? '' : String(v));
  const [app, setApp] = useState(rule.app ?? ''), [now, set] = useState({ age: text(rule.age), runs: text(rule.runs), bytes: text(rule.bytes), failures: text(rule.failures) });
  const [archive, setArchive] = useState(!!rule.archive), [sure, setSure] = useState(false), [problem, setProblem] = useState<Problem>();
  const cluster = rule.scope === 'cluster', { data, problem: unread, reload } = useRetention(), rules = data?.items;
  const there = fresh ? rules?.find((r) => r.scope === 'app' && r.app === app.trim()) : undefined; // a new rule takes the place of none
  const body: Record<string, unknown> = {};
  for (const f of keepFields) if (now[f].trim()) body[f] = f === 'runs' && !Number.isNaN(Number(now[f])) ? Number(now[f]) : now[f].trim();
  if (archive) body.archive = true;
  const becomes = { ...body, scope: rule.scope } as Rule;
  const changes: Change[] = [...keepFields, 'archive' as const].filter((f) => text(rule[f]) !== text(body[f])).map((field) => ({ field, was: rule[field], becomes: body[field] }));
  const error = (f: string) => problem?.errors.find((e) => e.field === f);
  const box = (f: (typeof keepFields)[number], label: Text, place: string, hint: Text) => (
    <Field id={'k' + f} label={t(label)} error={error(f)} hint={t(hint)}><input id={'k' + f} class="mono" placeholder={place} value={now[f]} inputMode={f === 'runs' ? 'numeric' : undefined} autocomplete="off" onInput={(e) => set({ ...now, [f]: e.currentTarget.value })} /></Field>
  );
  const save = async () => {
    if (there) return setSure(false);
    const close = closing();
    try {
      await call(cluster ? '/api/v1/cluster/retention' : `/api/v1/apps/${encodeURIComponent(app.trim())}/retention`, { method: 'PUT', body, headers: fresh ? { 'If-None-Match': '*' } : {} });
      close();
      say(t('Rule saved'));
      done();
    } catch (err) {
      if (!(err instanceof Problem)) throw err;
      if (err.status === 412) await reload(); // somebody has made one meanwhile: it is shown
      else setProblem(err);
      setSure(false);
    }
  };
  return (
    <Dialog title={cluster ? t('Retention of the cluster') : fresh ? t('New app rule') : t('Retention of the app {app}', { app })} close={closeDialog}>
      {sure ? (
        <div class="body">
          <Diff changes={changes} />
          <p>{t('The new rule:')}</p><Words rule={becomes} />
          <Notice look="warn"><p>{t('Runs beyond these limits are deleted with their output within about ten minutes. They cannot be restored.')}</p></Notice>
        </div>
      ) : (
        <div class="body">
          {fresh && <Field id="kapp" label={t('App')} error={error('app')}><input id="kapp" autoFocus value={app} onInput={(e) => setApp(e.currentTarget.value)} /></Field>}
          {there && <Notice look="warn" action={<Button icon="edit" work={() => edit(there)}>{t('Edit')}</Button>}><b>{t('The app {app} already has a rule', { app: there.app! })}</b><Words rule={there} /></Notice>}
          {fresh && !rules && unread && <ProblemBox problem={unread} again={reload} />}
          {box('age', 'Keep runs for', '2160h', 'Counted from the end of each run')}
          {box('runs', 'Keep the latest', '10000', 'Scheduled times per job')}
          {box('bytes', 'Max output', '1GiB', 'Per job; the oldest runs are deleted first')}
          {box('failures', 'Keep unsuccessful runs for', '8760h', 'Overrides the other limits')}
          {cluster && <label class="check"><input type="checkbox" checked={archive} onChange={() => setArchive(!archive)} />{t('Runs are deleted only after the archive command has stored them')}</label>}
          <p class="faint small">{cluster ? t('If all fields are empty, all runs are kept.') : t('Empty fields follow the cluster rule.')}</p>
          {problem && problem.errors.every((e) => !(e.field in now) && e.field !== 'app') && <ProblemBox problem={problem} />}
        </div>
      )}
      <footer>{sure ? <><Button work={() => setSure(false)}>{t('Back')}</Button><Button look="primary" icon="check" autoFocus work={save}>{t('Save')}</Button></>
        : <><Button work={closeDialog}>{t('Cancel')}</Button><Button look="primary" disabled={changes.length === 0 || !(cluster || app.trim()) || (fresh && (!rules || !!there))} work={() => { setProblem(undefined); setSure(true); }}>{t('Review changes')}</Button></>}</footer>
    </Dialog>
  );
}

interface Handler { handler: string; nodes: string[]; jobs: number; disabled: boolean; reason?: string; by?: string; since?: string }

function Handlers() {
  const { data, problem, reload } = useGet<Page<Handler>>('/api/v1/handlers', { every: 15_000, on: ['change', 'node', 'job'] });
  const can = may('operator'), items = data?.items ?? [];
  if (problem) return <Card title={t('Go functions')}><ProblemBox problem={problem} again={reload} /></Card>;
  if (items.length === 0) return null; // most clusters have none
  const disable = (h: Handler) => show(() => <DisableDialog handler={h.handler} done={() => void reload()} />);
  const enable = (h: Handler) => ask({ title: t('Enable {job}?', { job: h.handler }), button: t('Enable'), text: <p>{t('Waiting runs will start.')}</p>, work: async () => { await post(`/api/v1/handlers/${encodeURIComponent(h.handler)}/enable`); await reload(); } });
  return (
    <Card title={t('Go functions')}>
      <div class="scroll"><table>
        <thead><tr><th>{t('Function')}</th><th>{t('Nodes')}</th><th class="num">{t('Jobs')}</th><th>{t('State')}</th><th><span class="unseen">{t('Actions')}</span></th></tr></thead>
        <tbody>{items.map((h) => (
          <tr key={h.handler}>
            <td class="mono">{h.handler}</td><td>{h.nodes.length === 0 ? <span class="faint">{t('on no node')}</span> : h.nodes.map((n, i) => <>{i > 0 && ', '}<Link key={n} to={`/runs?node=${encodeURIComponent(n)}`}>{n}</Link></>)}</td>
            <td class="num"><Link to={`/jobs?q=${encodeURIComponent(h.handler)}`}>{h.jobs}</Link></td>
            <td>{h.disabled ? <><Badge tone="warn">{t('disabled')}</Badge><div class="faint small">{h.reason && <bdi>{h.reason} · </bdi>}{h.by}{h.since && <> · <Ago at={h.since} /></>}</div></> : <Badge tone={h.nodes.length ? 'good' : 'bad'}>{t('enabled')}</Badge>}</td>
            <td class="num">{can && (h.disabled ? <Button work={() => enable(h)}>{t('Enable')}</Button> : <Button look="quiet" work={() => disable(h)}>{t('Disable')}</Button>)}</td>
          </tr>
        ))}</tbody>
      </table></div>
      <Who text="Cluster operators can change this." role="operator" ok={can} />
    </Card>
  );
}

function DisableDialog({ handler, done }: { handler: string; done: () => void }) {
  const [reason, setReason] = useState(''), [problem, setProblem] = useState<Problem>();
  const work = async () => {
    const close = closing();
    try { await post(`/api/v1/handlers/${encodeURIComponent(handler)}/disable`, reason.trim() ? { reason: reason.trim() } : {}); close(); done(); } catch (err) { if (err instanceof Problem) setProblem(err); else throw err; }
  };
  return (
    <Dialog title={t('Disable {job}?', { job: handler })} close={closeDialog}>
      <div class="body">
        <p class="faint">{t('No node will start it. Runs in progress finish.')}</p>
        <Field id="hreason" label={t('Reason')} hint={t('Other users can see it.')} error={problem?.errors.find((e) => e.field === 'reason')}><input id="hreason" autoFocus maxLength={1000} value={reason} onInput={(e) => setReason(e.currentTarget.value)} /></Field>
        {problem && problem.errors.length === 0 && <ProblemBox problem={problem} />}
      </div>
      <footer><Button work={closeDialog}>{t('Cancel')}</Button><Button look="primary" work={work}>{t('Disable')}</Button></footer>
    </Dialog>
  );
}

interface LogLevel { node: string; level: string; until?: string }
const levels = ['debug', 'info', 'warn', 'error'];
const howLong: [string, Text][] = [['10m', '10 minutes'], ['1h', 'an hour'], ['24h', 'a day'], ['', 'until restart']];

/** What the node that answers writes into its log. Each node has its own level, and only it can tell. */
function Log({ sessions }: { sessions: Cluster['sessions'] }) {
  const { data, problem, reload } = useGet<LogLevel>('/api/v1/log-level', { every: 15_000, on: ['change'] });
  const [level, setLevel] = useState<string>(), [time, setTime] = useState('1h'), can = may('admin');
  if (!data) return problem && problem.status !== 404 ? <Card title={t('Log')}><ProblemBox problem={problem} again={reload} /></Card> : null;
  const wanted = level ?? data.level, others = sessions.filter((s) => s.node !== data.node && s.address);
  const change = () => ask({
    title: t('Set the log level of {node} to {level}?', { node: data.node, level: wanted }), button: t('Change level'),
    text: <p>{time ? t('For {time}. Then the node returns to the level it was started with.', { time: t(howLong.find(([v]) => v === time)![1]) }) : t('Until the node restarts.')}{wanted === 'debug' && ` ${t('Expect many log lines.')}`}</p>,
    work: async () => { await call('/api/v1/log-level', { method: 'PUT', body: { level: wanted, ...(time && { for: time }) } }); setLevel(undefined); await reload(); },
  });
  return (
    <section id="log"><Card title={<>{t('Log')} <span class="count">{data.node}</span></>}>
      <div class="in stack">
        <p>{t('Log level: {level}', { level: data.level })}{data.until && <>, {t('until')} <When at={data.until} /></>}{t('.')}</p>
        {can && (
          <div class="row">
            <select aria-label={t('Log level')} value={wanted} onChange={(e) => setLevel(e.currentTarget.value)}>{levels.map((l) => <option key={l} value={l}>{l}</option>)}</select>
            <select aria-label={t('For how long')} value={time} onChange={(e) => setTime(e.currentTarget.value)}>{howLong.map(([v, text]) => <option key={v} value={v}>{t(text)}</option>)}</select>
            <Button disabled={wanted === data.level && !data.until} work={change}>{t('Change level')}</Button>
          </div>
        )}
        {others.length > 0 && <p class="faint small">{t('Other nodes:')} {others.map((s, i) => <>{i > 0 && ', '}<a key={s.id} href={`${s.address.includes('://') ? '' : location.protocol + '//'}${s.address}/settings#log`}>{s.node}</a></>)}</p>}
      </div>
      <Who text="Cluster admins can change this." role="admin" ok={can} />
    </Card></section>
  );
}

/** What is set where nodes are started, and in the database: shown here, changed there. */
function Facts({ c }: { c: Cluster }) {
  const rows: [string, ComponentChildren, ComponentChildren][] = [
    [t('Database'), c.server, t('Set with GOCRONTAB_DSN on the nodes')],
    [t('Schema version'), c.schema, <Command line="go-crontab migrate" />],
    [t('Session expiry'), c.session_expiry ?? '—', <Command line="go-crontab serve --session-expiry 20s" />],
    [t('Slots'), <Link to="/cluster">{c.sessions.reduce((n, s) => n + s.slots, 0).toLocaleString()}</Link>, <Command line="go-crontab serve --slots 100" />],
    [t('Nodes'), <Link to="/cluster">{c.sessions.length}</Link>, t('Versions: {list}', { list: [...new Set(c.sessions.map((s) => s.version))].join(', ') })],
  ];
  return (
    <section id="facts"><Card title={t('Set elsewhere')}>
      {c.sessions.length === 0 && <Empty icon="cluster" title={t('No running nodes')}><p>{t('Start a node with go-crontab serve.')}</p></Empty>}
      <table class="settled"><tbody>{rows.map(([name, value, how]) => <tr key={name}><th scope="row">{name}</th><td>{value}</td><td class="faint small">{how}</td></tr>)}</tbody></table>
      <p class="in faint small who">{t('These are set where the nodes are started. Set in other parts of the console:')} <Link to="/settings/tokens">{t('Tokens')}</Link>{t(', ')}<Link to="/alerts">{t('Alerts')}</Link>{t(', ')}<Link to="/settings/calendars">{t('Calendars')}</Link>{t(', ')}<Link to="/settings/secrets">{t('Secrets')}</Link>{t('.')}</p>
    </Card></section>
  );
}

const Command = ({ line }: { line: string }) => <span class="row" style={{ gap: '4px', flexWrap: 'nowrap' }}><code>{line}</code><Button look="quiet" icon="copy" aria-label={t('Copy')} work={() => copy(line)} /></span>;
