import { useEffect, useMemo, useState } from 'preact/hooks';
import { all, call, may, mayAnywhere, onceKey, post, Problem, query } from '../api';
import { t, type Text, word } from '../i18n';
import { upTo, useGet, usePages } from '../live';
import { askPause, resumeCluster, write } from '../parts/actions';
import { apps, askApps } from '../parts/apps';
import { actions, kinds } from '../parts/audit';
import { Ago, ask, Badge, Button, Card, Choice, closeDialog, closing, copy, Dialog, Empty, Field, Head, Loading, Notice, ProblemBox, say, show, When } from '../parts/basic';
import { Diff, differences } from '../parts/diff';
import { Calendars } from './calendars';
import { Logins } from './logins';
import { here, Link, setQuery } from '../router';
import { stamp } from '../time';
import type { AuditEntry, Group, NewToken, Page, Pause, Role, Secret, Token } from '../types';

const most = 1000; // things of a kind that are listed at once

/** The parts of the settings that are lists of things, by the name in the address. */
export function SettingsPart({ tab, item }: { tab: string; item?: string }) {
  return tab === 'pauses' ? <Pauses /> : tab === 'calendars' ? <Calendars item={item} /> : tab === 'groups' ? <Groups /> : tab === 'secrets' ? <Secrets /> : tab === 'tokens' ? <Tokens /> : <Logins />;
}

export function Audit() {
  const q = here.value.search, of = (k: string) => q.get(k) ?? '';
  const path = `/api/v1/audit${query({ kind: of('kind'), who: of('who'), action: of('action'), app: of('app'), job_id: of('job_id'), limit: 50 })}`;
  const { items, problem, loading, reload, more } = usePages<AuditEntry>(path, (e) => e.id, { every: 5000, on: ['job', 'pause', 'node', 'change', 'backfill'] });
  const [open, setOpen] = useState<string>(), deleted = of('kind') === 'job' && of('action') === 'delete';
  const choices = [...new Set([...Object.keys(kinds), ...(of('kind') ? [of('kind')] : [])])];
  return (
    <>
      <Head title={t('Audit')} />
      <div class="filters">
        <select aria-label={t('Kind')} value={of('kind')} onChange={(e) => setQuery({ kind: e.currentTarget.value })}><option value="">{t('All kinds')}</option>{choices.map((k) => <option key={k} value={k}>{word(kinds, k)}</option>)}</select>
        <input class="short" aria-label={t('User')} placeholder={t('User')} value={of('who')} onChange={(e) => setQuery({ who: e.currentTarget.value })} />
        <button class="chip" aria-pressed={deleted} onClick={() => setQuery(deleted ? { kind: undefined, action: undefined } : { kind: 'job', action: 'delete' })}>{t('Deleted jobs')}</button>
        {of('action') && !deleted && <button class="chip" aria-pressed="true" onClick={() => setQuery({ action: undefined })}>{word(actions, of('action'))} ×</button>}
        {(['app', 'job_id'] as const).map((k) => of(k) && <button key={k} class="chip" aria-pressed="true" onClick={() => setQuery({ [k]: undefined })}>{k === 'app' ? t('App') : t('Job')}: {of(k)} ×</button>)}
      </div>
      <Card>
        {problem && <ProblemBox problem={problem} again={reload} />}
        {loading ? <Loading rows={8} /> : items.length === 0 ? !problem && <Empty icon="activity" title={t('No matching audit entries')} /> : (
          <div class="scroll">
            <table>
              <thead><tr><th>{t('Time')}</th><th>{t('User')}</th><th>{t('Event')}</th><th class="thin-hide">{t('Reason')}</th><th><span class="unseen">{t('Changes')}</span></th></tr></thead>
              <tbody>
                {items.map((e) => {
                  const changes = e.was !== undefined || e.became !== undefined ? differences(e.was, e.became) : [];
                  return [
                    <tr key={e.id}>
                      <td class="nowrap"><When at={e.at} /></td>
                      <td><button class="plainlink" onClick={() => setQuery({ who: e.who })}><bdi>{e.who}</bdi></button>{e.origin && <div class="faint small thin-hide">{e.origin}</div>}</td>
                      <td><b>{word(actions, e.action)}</b> {e.kind !== 'login' && <><span class="faint">{word(kinds, e.kind)}</span> </>}{e.job_id ? <Link to={`/jobs/${e.job_id}`}><bdi>{e.name}</bdi></Link> : <bdi>{e.name ?? e.app ?? ''}</bdi>}</td>
                      <td class="thin-hide"><bdi>{e.reason}</bdi></td>
                      <td class="num">{changes.length > 0 && <Button look="quiet" icon="down" aria-expanded={open === e.id} work={() => setOpen(open === e.id ? undefined : e.id)}><span class="thin-unseen">{t('{n} fields', { n: changes.length })}</span></Button>}</td>
                    </tr>,
                    open === e.id && <tr key={e.id + 'd'}><td colSpan={5}><Diff changes={changes} /></td></tr>,
                  ];
                })}
              </tbody>
            </table>
          </div>
        )}
        {more && <div class="more-row"><Button work={more}>{t('Show older')}</Button></div>}
      </Card>
    </>
  );
}

function Pauses() {
  const list = useGet<Page<Pause>>('/api/v1/pauses', { every: 5000, on: ['pause', 'job'] });
  const jobs = useGet<Page<{ id: string; app: string; name: string; pause?: Pause }>>('/api/v1/jobs?status=paused', { every: 5000, on: ['pause', 'job'], read: upTo(2000) }); // those of apps that are paused are among them
  const [app, setApp] = useState('');
  useEffect(askApps, []);
  const items = list.data?.items.filter((p) => p.scope !== 'job') ?? [];
  const own = jobs.data?.items.filter((j) => !j.pause || j.pause.scope === 'job') ?? [];
  return (
    <div class="stack">
      <Card title={t('Paused apps and cluster')} more={mayAnywhere('operator') && <form class="row" onSubmit={(e) => { e.preventDefault(); if (app.trim()) askPause(t('Pause the app {app}', { app: app.trim() }), `/api/v1/apps/${encodeURIComponent(app.trim())}/pause`, () => { setApp(''); void list.reload(); }); }}>
        <input style={{ width: '140px' }} list="apps" aria-label={t('App')} placeholder={t('App')} value={app} onInput={(e) => setApp(e.currentTarget.value)} /><datalist id="apps">{apps().map((a) => <option key={a} value={a} />)}</datalist><button class="button" disabled={!app.trim()}>{t('Pause')}</button></form>}>
        {list.problem && <ProblemBox problem={list.problem} again={list.reload} />}
        {list.loading ? <Loading rows={2} /> : items.length === 0 ? !list.problem && <Empty icon="play" title={t('No app is paused')}><p>{t('Pausing an app stops new runs of all its jobs. Enter its name above.')}</p></Empty> : (
          <table><tbody>{items.map((p) => (
            <tr key={p.scope + p.app}>
              <td><b>{p.scope === 'cluster' ? t('The whole cluster') : <Link to={`/jobs?app=${encodeURIComponent(p.app ?? '')}`}><bdi>{p.app}</bdi></Link>}</b>{p.jobs !== undefined && <Link class="small" to={p.scope === 'cluster' ? '/jobs' : `/jobs?app=${encodeURIComponent(p.app ?? '')}`}> {t('{n} jobs', { n: p.jobs })}</Link>}</td>
              <td><bdi>{p.reason}</bdi><div class="faint small">{p.by} · <Ago at={p.since} />{p.until && <> · {t('until')} <When at={p.until} /></>}</div></td>
              <td class="num">{p.ended ? <span class="faint">{t('ended')}</span> : may('operator', p.app) && <Button icon="play" work={async () => { if (p.scope === 'cluster') return resumeCluster(list.reload); await post(`/api/v1/apps/${encodeURIComponent(p.app ?? '')}/resume`); await list.reload(); }}>{t('Resume')}</Button>}</td>
            </tr>
          ))}</tbody></table>
        )}
      </Card>
      <Card title={t('Paused jobs')}>
        {jobs.problem && <ProblemBox problem={jobs.problem} again={jobs.reload} />}
        {jobs.loading ? <Loading rows={2} /> : own.length === 0 ? !jobs.problem && !jobs.data?.next && <Empty icon="play" title={t('No job is paused')}><p>{t('To pause a job, open it and choose Pause.')}</p></Empty> : (
          <table><tbody>{own.map((j) => (
            <tr key={j.id}><td><Link to={`/jobs/${j.id}`}><bdi>{j.name}</bdi></Link> <span class="faint small"><bdi>{j.app}</bdi></span></td><td><bdi>{j.pause?.reason}</bdi>{j.pause && <div class="faint small">{j.pause.by} · <Ago at={j.pause.since} />{j.pause.until && <> · {t('until')} <When at={j.pause.until} /></>}</div>}</td></tr>
          ))}</tbody></table>
        )}
        {jobs.data?.next && <p class="in faint small">{t('Only the first {n} paused jobs are listed.', { n: jobs.data.items.length.toLocaleString() })} <Link to="/jobs?show=paused">{t('Show all jobs')}</Link></p>}
      </Card>
    </div>
  );
}

function Groups() {
  const list = useGet<Page<Group>>('/api/v1/groups', { every: 3000, on: ['change', 'run'], read: upTo(most) });
  const items = list.data?.items ?? [];
  const edit = (g?: Group) => show(() => <GroupDialog group={g} done={() => void list.reload()} />);
  return (
    <Card title={t('Groups')} more={may('admin') && <Button icon="plus" work={() => edit()}>{t('New group')}</Button>}>
      {list.problem && <ProblemBox problem={list.problem} again={list.reload} />}
      {list.loading ? <Loading /> : items.length === 0 ? !list.problem && <Empty icon="jobs" title={t('No groups yet')}><p>{t('A group limits how many runs of its jobs are in progress at the same time in the whole cluster, or how many start in a period.')}</p></Empty> : (
        <div class="scroll"><table><thead><tr><th>{t('Name')}</th><th>{t('Slots')}</th><th>{t('Rate')}</th><th class="num">{t('Waiting')}</th><th class="num thin-hide">{t('Jobs')}</th><th /></tr></thead>
          <tbody>{items.map((g) => (
            <tr key={g.name}>
              <td><bdi>{g.name}</bdi></td>
              <td class="used">{g.slots ? <Used of={g.slots} used={g.executing} text={`${g.executing} / ${g.slots}`} /> : g.executing}</td>
              <td class="used" title={g.next_start && t('Next start at {time}', { time: stamp(g.next_start) })}>{g.rate && <Used of={parseInt(g.rate)} used={g.starts ?? 0} text={`${g.starts ?? 0} / ${g.rate}`} />}</td>
              <td class="num"><Link to={`/jobs?group=${encodeURIComponent(g.name)}&show=waiting`}>{g.waiting}</Link></td><td class="num thin-hide"><Link to={`/jobs?group=${encodeURIComponent(g.name)}`}>{g.jobs}</Link></td>
              <td class="num nowrap">{may('admin') && <><Button look="quiet" icon="edit" aria-label={t('Edit')} work={() => edit(g)} /><Button look="quiet" icon="trash" aria-label={t('Delete')} work={() => ask({ title: t('Delete the group {name}?', { name: g.name }), button: t('Delete'), danger: true, text: <p>{t('A group that jobs still use cannot be deleted.')}</p>, work: async () => { await call(`/api/v1/groups/${encodeURIComponent(g.name)}`, { method: 'DELETE' }); await list.reload(); } })} /></>}</td>
            </tr>
          ))}</tbody></table></div>
      )}
    </Card>
  );
}

const Used = ({ of, used, text }: { of: number; used: number; text: string }) => (
  <><div class="meter"><i style={{ width: `${Math.min(100, (100 * used) / Math.max(1, of))}%` }} /></div><span class="small faint">{text}</span></>
);

function GroupDialog({ group: g, done }: { group?: Group; done: () => void }) {
  const [name, setName] = useState(g?.name ?? ''), [slots, setSlots] = useState(String(g ? g.slots ?? '' : 1)), [rate, setRate] = useState(g?.rate ?? ''), [problem, setProblem] = useState<Problem>();
  const work = async () => {
    const close = closing();
    try { await write(`/api/v1/groups/${encodeURIComponent(name)}`, { ...(slots.trim() && { slots: Number(slots) }), ...(rate.trim() && { rate: rate.trim() }) }, g); close(); done(); } catch (err) { if (err instanceof Problem) setProblem(err); else throw err; }
  };
  return (
    <Dialog title={g ? g.name : t('New group')} close={closeDialog}>
      <div class="body">
        {!g && <Field id="gname" label={t('Name')} error={problem?.errors.find((x) => x.field === 'name')}><input id="gname" autoFocus value={name} onInput={(e) => setName(e.currentTarget.value)} /></Field>}
        <Field id="slots" label={t('Slots')} error={problem?.errors.find((x) => x.field === 'slots')}><input id="slots" type="number" min={1} value={slots} onInput={(e) => setSlots(e.currentTarget.value)} /></Field>
        <Field id="rate" label={t('Rate')} hint={t('The most starts in any period, such as 10/1m. Leave slots or the rate empty for no limit.')} error={problem?.errors.find((x) => x.field === 'rate')}><input id="rate" placeholder="10/1m" value={rate} onInput={(e) => setRate(e.currentTarget.value)} /></Field>
        {problem && problem.errors.length === 0 && <ProblemBox problem={problem} />}
      </div>
      <footer><Button work={closeDialog}>{t('Cancel')}</Button><Button look="primary" disabled={!name.trim()} work={work}>{t('Save')}</Button></footer>
    </Dialog>
  );
}

function Secrets() {
  const edit = (s?: Secret) => show(() => <SecretDialog secret={s} done={() => void list.reload()} />);
  const list = useGet<Page<Secret>>('/api/v1/secrets', { every: 15_000, on: ['change'], read: upTo(most) });
  const items = list.data?.items ?? [];
  return (
    <Card title={t('Secrets')} more={mayAnywhere('admin') && <Button icon="plus" work={() => edit()}>{t('New secret')}</Button>}>
      {list.problem && <ProblemBox problem={list.problem} again={list.reload} />}
      {list.loading ? <Loading /> : items.length === 0 ? !list.problem && <Empty icon="lock" title={t('No secrets yet')}><p>{t('A secret holds a password or key. Jobs use it as {{secret.NAME}}; its value cannot be read back.')}</p></Empty> : (
        <div class="scroll"><table><thead><tr><th>{t('Name')}</th><th>{t('App')}</th><th>{t('Encryption key')}</th><th>{t('Updated')}</th><th /></tr></thead>
          <tbody>{items.map((s) => (
            <tr key={`${s.app ?? ''}/${s.name}`}><td class="mono">{s.name}</td><td>{s.app ?? <span class="faint">{t('all apps')}</span>}</td><td><Badge tone={s.key_state === 'current' ? 'good' : s.key_state === 'old' ? 'warn' : 'bad'}>{word(keyText, s.key_state)}</Badge></td><td><Ago at={s.updated} /> <span class="faint small"><bdi>{s.updated_by}</bdi></span></td>
              <td class="num nowrap">{may('admin', s.app) && <><Button look="quiet" icon="edit" aria-label={t('Change the value of {name}', { name: s.name })} title={t('Change the value of {name}', { name: s.name })} work={() => edit(s)} /><Button look="quiet" icon="trash" aria-label={t('Delete')} work={() => ask({ title: t('Delete the secret {name}?', { name: s.name }), button: t('Delete'), danger: true, text: <p>{t('Jobs that use it will fail.')}</p>, work: async () => { await call(`/api/v1/secrets/${encodeURIComponent(s.name)}${s.app ? `?app=${encodeURIComponent(s.app)}` : ''}`, { method: 'DELETE' }); await list.reload(); } })} /></>}</td></tr>
          ))}</tbody></table></div>
      )}
    </Card>
  );
}

const keyText: Record<string, Text> = { current: 'current', old: 'old', unknown: 'unknown' };

function SecretDialog({ secret: s, done }: { secret?: Secret; done: () => void }) {
  const [name, setName] = useState(s?.name ?? ''), [value, setValue] = useState(''), [app, setApp] = useState(s?.app ?? ''), [problem, setProblem] = useState<Problem>();
  const error = (f: string) => problem?.errors.find((x) => x.field === f);
  const work = async () => {
    const close = closing();
    try { await write(`/api/v1/secrets/${encodeURIComponent(name)}`, { value, ...(app.trim() && { app: app.trim() }) }, s); close(); say(t('{job} saved', { job: name })); done(); } catch (err) { if (err instanceof Problem) setProblem(err); else throw err; }
  };
  return (
    <Dialog title={s ? t('Change the value of {name}', { name: s.name }) : t('New secret')} close={closeDialog}>
      <div class="body">
        {!s && <Field id="sname" label={t('Name')} error={error('name')}><input id="sname" class="mono" autoFocus value={name} onInput={(e) => setName(e.currentTarget.value)} /></Field>}
        <Field id="svalue" label={t('Value')} error={error('value')} hint={t('It cannot be read back, neither here nor through the API.')}><input id="svalue" type="password" autocomplete="off" autoFocus={!!s} value={value} onInput={(e) => setValue(e.currentTarget.value)} /></Field>
        {!s && <Field id="sapp" label={t('App')} error={error('app')} hint={t('Leave empty to let all apps use it.')}><input id="sapp" value={app} onInput={(e) => setApp(e.currentTarget.value)} /></Field>}
        {problem && problem.errors.length === 0 && <ProblemBox problem={problem} />}
      </div>
      <footer><Button work={closeDialog}>{t('Cancel')}</Button><Button look="primary" disabled={!name.trim() || !value} work={work}>{t('Save')}</Button></footer>
    </Dialog>
  );
}

function Tokens() {
  if (!may('admin')) return <Empty icon="lock" title={t('Needs {role} role', { role: t('admin') })} />;
  return <TokenList />;
}

function TokenList() {
  const [items, setItems] = useState<Token[]>(), [problem, setProblem] = useState<Problem>();
  const load = () => all<Token>('/api/v1/tokens', 1000).then((all) => { setItems(all); setProblem(undefined); }, setProblem);
  useEffect(() => { void load(); }, []);
  return (
    <Card title={t('Tokens')} more={<Button icon="plus" work={() => show(() => <TokenDialog done={() => void load()} />)}>{t('New token')}</Button>}>
      {problem && <ProblemBox problem={problem} again={load} />}
      {!items ? !problem && <Loading /> : (
        <div class="scroll"><table><thead><tr><th>{t('Name')}</th><th>{t('Role')}</th><th>{t('State')}</th><th class="thin-hide">{t('Last used')}</th><th class="thin-hide">{t('Expires')}</th><th class="thin-hide">{t('Created')}</th><th /></tr></thead>
          <tbody>{items.map((k) => (
            <tr key={k.id}><td><bdi>{k.name}</bdi></td><td>{t(k.role)}{k.apps && <div class="small faint">{k.apps.join(', ')}</div>}</td><td><Badge tone={k.state === 'active' ? 'good' : 'mute'}>{word(tokenText, k.state)}</Badge></td>
              <td class="thin-hide">{k.last_used ? <><Ago at={k.last_used} /> <span class="faint small">{k.last_used_from}</span></> : <span class="faint">{t('never')}</span>}</td><td class="thin-hide">{k.expires ? <When at={k.expires} /> : <span class="faint">{t('never')}</span>}</td><td class="thin-hide"><Ago at={k.created} /> <span class="faint small"><bdi>{k.created_by}</bdi></span></td>
              <td class="num">{k.state === 'active' && <Button look="quiet" work={() => ask({ title: t('Revoke the token {name}?', { name: k.name }), button: t('Revoke'), danger: true, text: <p>{t('The token stops working on every node. This cannot be undone.')}</p>, work: async () => { await call(`/api/v1/tokens/${k.id}`, { method: 'DELETE' }); await load(); } })}>{t('Revoke')}</Button>}</td></tr>
          ))}</tbody></table></div>
      )}
    </Card>
  );
}

const tokenText: Record<string, Text> = { active: 'active', expired: 'expired', revoked: 'revoked' };
const roleText: Record<Role, Text> = { viewer: 'viewer', operator: 'operator', admin: 'admin' };

function TokenDialog({ done }: { done: () => void }) {
  const [name, setName] = useState(''), [role, setRole] = useState<Role>('viewer'), [apps, setApps] = useState(''), [expires, setExpires] = useState('720h');
  const [problem, setProblem] = useState<Problem>(), [made, setMade] = useState<NewToken>();
  const error = (f: string) => problem?.errors.find((x) => x.field === f);
  const key = useMemo(onceKey, [name, role, apps, expires]); // who presses again gets the same token, not two
  const work = async () => {
    try {
      const list = apps.split(',').map((a) => a.trim()).filter(Boolean);
      setMade(await post<NewToken>('/api/v1/tokens', { name, role, ...(list.length && { apps: list }), expires: expires.trim() || 'never' }, key));
      done();
    } catch (err) { if (err instanceof Problem) setProblem(err); else throw err; }
  };
  return (
    <Dialog title={t('New token')} close={closeDialog} precious={!!made}>
      {made ? (
        <div class="body">
          <Notice look="good" icon="key"><b>{t('Copy it now. It is shown only once.')}</b><pre class="code" style={{ marginTop: '8px' }}>{made.token}</pre></Notice>
          <div class="row"><Button icon="copy" look="primary" work={() => copy(made.token ?? '')}>{t('Copy')}</Button><Button work={closeDialog}>{t('Close')}</Button></div>
        </div>
      ) : <>
        <div class="body">
          <Field id="tname" label={t('Name')} error={error('name')} hint={t('The person or program that will use it. The audit shows this name.')}><input id="tname" autoFocus value={name} onInput={(e) => setName(e.currentTarget.value)} /></Field>
          <div class="field"><span class="label">{t('Role')}</span><Choice label={t('Role')} value={role} set={setRole} options={(['viewer', 'operator', 'admin'] as const).map((value) => ({ value, text: t(roleText[value]) }))} /></div>
          <Field id="tapps" label={t('Apps')} error={error('apps')} hint={t('Separate names with commas. Leave empty for all.')}><input id="tapps" value={apps} onInput={(e) => setApps(e.currentTarget.value)} /></Field>
          <Field id="texpires" label={t('Expires')} error={error('expires')} hint={t('A duration such as 720h, or a time such as 2027-01-31T09:00:00Z. Leave empty for a token that never expires.')}><input id="texpires" value={expires} onInput={(e) => setExpires(e.currentTarget.value)} /></Field>
          {problem && problem.errors.length === 0 && <ProblemBox problem={problem} />}
        </div>
        <footer><Button work={closeDialog}>{t('Cancel')}</Button><Button look="primary" disabled={!name.trim()} work={work}>{t('Create token')}</Button></footer>
      </>}
    </Dialog>
  );
}
