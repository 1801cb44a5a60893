import { useEffect, useState } from 'preact/hooks';
import { get, Problem } from '../api';
import { checkSaid, findingSaid, t, type Text, word } from '../i18n';
import { Badge, Button, Card, copy, Empty, Loading, ProblemBox, type Tone, When } from '../parts/basic';
import { Link } from '../router';

interface Finding { check: string; code?: string; area: string; severity: string; seen: string; why: string; fix: string; sql?: string[]; commands?: string[]; jobs?: { id: string; app: string; name: string }[]; nodes?: string[] }
interface Report { at: string; node: string; worst: string; findings: Finding[]; checks: { id: string; area: string; about: string; severity: string; skipped?: string }[] }

const tones: Record<string, Tone> = { ok: 'good', notice: 'mute', warning: 'warn', error: 'bad', unknown: 'mute' };
const words: Record<string, Text> = { ok: 'ok', notice: 'notice', warning: 'warning', error: 'error', unknown: 'not checked' };
const areas: Record<string, Text> = { mysql: 'Database', schema: 'Schema', cluster: 'Cluster', machine: 'Machine', jobs: 'Jobs', history: 'History' };

const Nodes = ({ names }: { names: string[] }) => <>{names.map((n, i) => <>{i > 0 && ', '}<Link key={n} to={`/runs?node=${encodeURIComponent(n)}`}>{n}</Link></>)}</>;

/** What doctor finds. It asks the database much: once when it is opened, and when somebody wants it again. */
export function Doctor() {
  const [r, setR] = useState<Report>(), [problem, setProblem] = useState<Problem>(), [all, setAll] = useState(false);
  const look = () => get<Report>('/api/v1/doctor').then((x) => { setR(x); setProblem(undefined); }, setProblem);
  useEffect(() => { void look(); }, []);
  if (problem?.status === 403) return null; // who is limited to apps
  return (
    <Card title={<>{t('Health checks')} {r && <Badge tone={tones[r.worst] ?? 'mute'}>{word(words, r.worst)}</Badge>}</>} more={<>{r && <span class="faint small thin-hide"><When at={r.at} /> · {r.node}</span>}<Button work={look}>{t('Check again')}</Button></>}>
      {problem && <ProblemBox problem={problem} again={look} />}
      {!r ? !problem && <Loading rows={2} /> : <>
        {r.findings.length === 0 && <Empty icon="check" title={t('No problems found')} />}
        <ul class="findings">{r.findings.map((f, i) => (
          <li key={f.check + i}>
            <Badge tone={tones[f.severity] ?? 'mute'}>{word(words, f.severity)}</Badge>
            <div>
              <b>{findingSaid(f) ?? f.seen}</b> <span class="faint small">{word(areas, f.area)}{f.nodes && <> · <Nodes names={f.nodes} /></>}</span>
              {checkSaid(f.check) && <p class="faint">{checkSaid(f.check)![2]}</p>}
              {checkSaid(f.check) ? <p class="small" lang="en">{f.seen}. {f.why} {f.fix}</p> : <><p class="faint">{f.why}</p><p>{f.fix}</p></>}
              {[...(f.sql ?? []), ...(f.commands ?? [])].map((line) => <div key={line} class="copyline"><code>{line}</code><Button look="quiet" icon="copy" aria-label={t('Copy')} work={() => copy(line)} /></div>)}
              {f.jobs && <div class="chips">{f.jobs.map((j) => <Link key={j.id} class="chip" to={`/jobs/${j.id}`}><bdi>{j.app === 'default' ? j.name : `${j.app}/${j.name}`}</bdi></Link>)}</div>}
            </div>
          </li>
        ))}</ul>
        <div class="more-row"><Button look="quiet" aria-expanded={all} work={() => setAll(!all)}>{t('All {n} checks', { n: r.checks.length })}</Button></div>
        {all && <table><tbody>{r.checks.map((c) => <tr key={c.id}><td class="faint small">{word(areas, c.area)}</td><td>{checkSaid(c.id)?.[0] ?? c.about}{c.skipped && <div class="faint small">{c.skipped}</div>}</td><td class="num"><Badge tone={tones[c.severity] ?? 'mute'}>{word(words, c.severity)}</Badge></td></tr>)}</tbody></table>}
      </>}
    </Card>
  );
}
