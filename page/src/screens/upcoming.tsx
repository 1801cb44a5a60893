import { useEffect, useState } from 'preact/hooks';
import { now, Problem } from '../api';
import { t } from '../i18n';
import { following, second } from '../live';
import { Choice, Empty, Head, Loading, Notice, ProblemBox, Until, when } from '../parts/basic';
import { plans, type Plan } from '../parts/dues';
import { here, Link, setQuery } from '../router';
import { clock, day, weekday } from '../time';

const often = 40; // more due times than that are told in one line

export function Upcoming() {
  const span = here.value.search.get('span') === 'day' ? 24 : here.value.search.get('span') === 'week' ? 168 : 1;
  const [list, setList] = useState<Plan[]>(), [left, setLeft] = useState(0), [out, setOut] = useState(0), [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    let stop = new AbortController();
    const load = () => {
      stop.abort();
      const mine = (stop = new AbortController());
      plans(span, mine.signal, (some, left) => { setList((old) => (old && left > 0 ? old : some)); setLeft(left); }).then(
        (r) => { if (!mine.signal.aborted) { setList(r.plans); setOut(r.leftOut); setLeft(0); setProblem(undefined); } },
        (err) => { if (!mine.signal.aborted) setProblem(err); });
    };
    setList(undefined);
    load();
    const timer = setInterval(() => { if (!document.hidden && following.value) load(); }, 60_000);
    return () => { clearInterval(timer); stop.abort(); };
  }, [span]);
  void second.value;
  const t0 = now() - 500;
  const frequent = (list ?? []).filter((p) => p.per !== undefined || p.dues.length > often);
  const rows = (list ?? []).filter((p) => !frequent.includes(p)).flatMap((p) => p.dues.filter((d) => d > t0).map((due) => ({ due, job: p.job }))).sort((a, b) => a.due - b.due);
  const days = new Map<string, typeof rows>();
  for (const r of rows.slice(0, 600)) days.set(day(r.due), [...(days.get(day(r.due)) ?? []), r]);
  return (
    <>
      <Head title={t('Upcoming')} sub={list && <span>{t('{n} due times of {jobs} jobs', { n: rows.length.toLocaleString(), jobs: new Set(rows.map((r) => r.job.id)).size })}{left > 0 && ` · ${t('asking…')}`}</span>}>
        <Choice label={t('How far')} value={span === 1 ? 'hour' : span === 24 ? 'day' : 'week'} set={(v) => setQuery({ span: v === 'hour' ? undefined : v })} options={[{ value: 'hour', text: t('Next hour') }, { value: 'day', text: t('Next day') }, { value: 'week', text: t('Next week') }]} />
      </Head>
      <div class="stack">
        {problem && <ProblemBox problem={problem} />}
        {out > 0 && <Notice look="warn"><p>{t('{n} more jobs are due, and are left out here.', { n: out })}</p></Notice>}
        {frequent.length > 0 && (
          <section class="card"><header><h2>{t('Again and again')}</h2></header><div class="in chips">{frequent.map((p) => <Link key={p.job.id} class="chip" to={`/jobs/${p.job.id}`}><bdi>{p.job.name}</bdi> <span class="faint mono small">{when(p.job)}</span></Link>)}</div></section>
        )}
        {!list ? !problem && <section class="card"><Loading rows={8} /></section> : rows.length === 0 ? <section class="card"><Empty icon="upcoming" title={t('Nothing else is due')} /></section> : [...days].map(([d, items]) => (
          <section key={d} class="card">
            <header><h2>{weekday(items[0].due)} {d}</h2><span class="count">{items.length}</span></header>
            <table><tbody>{items.map((r) => (
              <tr key={r.job.id + r.due}><td class="mono nowrap" style={{ width: '110px' }}>{clock(r.due)}</td><td><Link to={`/jobs/${r.job.id}`}><bdi>{r.job.name}</bdi></Link> {r.job.app !== 'default' && <span class="faint small"><bdi>{r.job.app}</bdi></span>}</td><td class="thin-hide faint mono">{when(r.job)}</td><td class="num faint"><Until at={new Date(r.due).toISOString()} /></td></tr>
            ))}</tbody></table>
          </section>
        ))}
      </div>
    </>
  );
}
