import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { all, get, may, Problem, query } from '../api';
import { bare, fresh, line, type Piece } from '../ansi';
import { explained, said, t } from '../i18n';
import { following, useGet } from '../live';
import { killRun, runNow } from '../parts/actions';
import { Badge, Button, Card, copy, Empty, Head, Loading, Notice, OutcomeBadge, outcomeOf, ProblemBox, toneOf, When } from '../parts/basic';
import { Icon } from '../parts/icon';
import { Late, Took, triggerText } from '../parts/runtable';
import { Link } from '../router';
import { clock, ms, size, span } from '../time';
import type { Explanation, Job, Output, Run } from '../types';

export function RunScreen({ id }: { id: string }) {
  const [ended, setEnded] = useState(false);
  const { data: r, problem, loading, reload } = useGet<Run>(`/api/v1/runs/${encodeURIComponent(id)}`, { every: ended ? 0 : 1500, on: ['run'] });
  const job = useGet<Job>(r ? `/api/v1/jobs/${r.job_id}` : null, { every: 0 });
  useEffect(() => { if (r?.state === 'ended') setEnded(true); }, [r?.state]);
  if (!r) return loading ? <Loading /> : problem?.status === 404 ? <Empty icon="question" title={t('There is no such run')}><p>{problem.detail}</p><Link class="button" to="/runs">{t('Runs')}</Link></Empty> : problem ? <ProblemBox problem={problem} again={reload} /> : <Loading />;
  const j = job.data, zone = j?.timezone;
  return (
    <>
      <Head title={<><bdi>{r.job}</bdi></>} crumb={<><Link to="/runs">{t('Runs')}</Link> / <Link to={`/jobs/${r.job_id}`}><bdi>{r.app === 'default' ? r.job : `${r.app}/${r.job}`}</bdi></Link></>}
        sub={<><OutcomeBadge run={r} /><span>{t('due')} <When at={r.due} zone={zone} long /></span><span>{triggerText(r)}</span></>}>
        {r.state === 'running' && may('operator', r.app) && <Button look="danger" icon="stop" work={() => killRun(r, () => void reload())}>{t('Kill')}</Button>}
        {r.state === 'ended' && j && may('operator', r.app) && <Button icon="bolt" work={() => runNow(j, true)}>{t('Run again')}</Button>}
        {r.outcome && r.outcome !== 'succeeded' && j && may('admin', r.app) && <Link class="button" to={`/jobs/${r.job_id}/edit`}><Icon name="edit" />{t('Edit the job')}</Link>}
        <Button icon="link" aria-label={t('Copy the id')} title={t('Copy the id')} work={() => copy(r.id)} />
      </Head>
      <div class="stack">
        {r.outcome && r.outcome !== 'succeeded' && <WhyNot run={r} job={j} />}
        <div class="tiles">
          <div class="tile"><span>{t('Took')}</span><b><Took run={r} /></b>{r.started && <small><When at={r.started} zone={zone} />{r.ended && <> – {clock(r.ended)}</>}</small>}</div>
          <div class="tile"><span>{t('Late')}</span><b><Late run={r} /></b></div>
          <div class="tile"><span>{r.signal ? t('Signal') : t('Exit code')}</span><b class={r.exit_code ? 'bad' : ''}>{r.signal ?? r.exit_code ?? '—'}</b></div>
          <Link class="tile" to={`/runs?node=${encodeURIComponent(r.node)}`}><span>{t('Node')}</span><b class="cut">{r.node || '—'}</b></Link>
          <div class="tile"><span>{t('Attempt')}</span><b>{r.attempt}</b>{r.state === 'ended' && !r.final && <small>{t('another one follows')}</small>}</div>
        </div>
        {(r.attempt > 1 || !r.final) && <Attempts run={r} />}
        {(r.started || r.output_bytes > 0) && <OutputView run={r} ended={() => void reload()} />}
        <p class="faint small mono">{r.id}</p>
      </div>
    </>
  );
}

function WhyNot({ run: r, job: j }: { run: Run; job?: Job }) {
  const [e, setE] = useState<Explanation>();
  const started = !!r.started;
  useEffect(() => { if (!started) get<Explanation>(`/api/v1/jobs/${r.job_id}/explain${query({ at: r.due })}`).then(setE, () => undefined); }, [r.id, started]);
  const tone = toneOf(outcomeOf(r));
  const advice = r.exit_code === 127 ? t('127: the shell did not find the command. Is it installed on {node}, and in PATH?', { node: r.node })
    : r.exit_code === 126 ? t('126: the shell found the file, and may not execute it.')
    : r.exit_code === 137 || r.signal === 'killed' ? t('Something killed it, perhaps for its memory.')
    : r.outcome === 'timed_out' && j?.timeout ? t('Its timeout is {timeout}. Is that enough?', { timeout: j.timeout })
    : r.outcome === 'lost' ? t('Whether its work was done nobody knows: look at what it does before it is run again.')
    : started && r.outcome === 'failed' ? t('The end of the output says most.') : '';
  return (
    <Notice look={tone === 'bad' ? 'bad' : tone === 'warn' ? 'warn' : undefined} icon={tone === 'mute' ? 'question' : 'warning'}
      action={<Link class="button" to={`/jobs/${r.job_id}/why?at=${encodeURIComponent(r.due)}`}>{t('Explain')}</Link>}>
      <b><bdi>{r.reason ? said(r.reason) : (r.exit_code ? t('exit code {n}', { n: r.exit_code }) : e ? explained(e.cause, e.answer) : t('It did not succeed'))}</bdi></b>
      {e && r.reason && <p>{explained(e.cause, e.answer)}</p>}
      {advice && <p>{advice}</p>}
    </Notice>
  );
}

/** All attempts of the due time on one line of time. */
function Attempts({ run: r }: { run: Run }) {
  const [list, set] = useState<Run[]>([]);
  useEffect(() => {
    const from = r.due, to = new Date(ms(r.due) + 1).toISOString();
    all<Run>(`/api/v1/runs${query({ job_id: r.job_id, from, to })}`, 200).then((x) => set(x.filter((y) => y.due === r.due && y.started).sort((a, b) => a.attempt - b.attempt)), () => undefined);
  }, [r.id, r.state]);
  if (list.length < 2) return null;
  const start = ms(r.due), end = Math.max(...list.map((x) => (x.ended ? ms(x.ended) : Date.now()))), all_ = Math.max(1, end - start);
  return (
    <Card title={t('Attempts')}>
      <div class="in">
        {list.map((x) => {
          const left = (100 * (ms(x.started) - start)) / all_, width = Math.max(0.6, (100 * ((x.ended ? ms(x.ended) : Date.now()) - ms(x.started))) / all_);
          return (
            <div key={x.id} class="attempt">
              <Link to={`/runs/${x.id}`} aria-current={x.id === r.id ? 'page' : undefined}>{x.attempt}. <OutcomeBadge run={x} /></Link>
              <div class="meter" title={`+${span(ms(x.started) - start)}`}><i class={toneOf(outcomeOf(x))} style={{ marginLeft: `${Math.min(99.4, left)}%`, width: `${Math.min(width, 100 - left)}%` }} /></div>
              <span class="small faint num">+{span(ms(x.started) - start)} · {x.node}</span>
            </div>
          );
        })}
      </div>
    </Card>
  );
}

const longest = 4000; // characters of a line that are shown at once
const mostLines = 20_000;

function OutputView({ run: r, ended }: { run: Run; ended: () => void }) {
  const [text, setText] = useState(''), [next, setNext] = useState(0);
  const [done, setDone] = useState(false), [problem, setProblem] = useState<Problem>();
  const [wrap, setWrap] = useState(true), [search, setSearch] = useState(''), [stick, setStick] = useState(r.outcome !== 'succeeded'); // the end of what failed says most
  const box = useRef<HTMLDivElement>(null);
  const state = useRef({ next: 0, done: false });

  useEffect(() => {
    let stopped = false, timer = 0;
    state.current = { next: 0, done: false };
    setText(''); setDone(false); setNext(0);
    const stop = new AbortController();
    const look = async () => {
      if (following.value && !document.hidden || state.current.next === 0) {
        try {
          const o = await get<Output>(`/api/v1/runs/${r.id}/output?from=${state.current.next}`, stop.signal);
          if (stopped) return;
          setProblem(undefined);
          // What is kept of a run that ended may leave out its middle: then it is read again from its beginning.
          if (o.state === 'ended' && state.current.next > 0) {
            const whole = await get<Output>(`/api/v1/runs/${r.id}/output?from=0`, stop.signal);
            setText(whole.text);
          } else setText((old) => (state.current.next === 0 ? o.text : old + o.text));
          state.current.next = o.next;
          setNext(o.bytes);
          if (o.state === 'ended') { setDone(true); ended(); return; }
        } catch (err) {
          if (stopped) return;
          setProblem(err as Problem);
          if ((err as Problem).status === 404) return;
        }
      }
      timer = window.setTimeout(look, 700);
    };
    // While it executes there is a stream of what it writes. Where that is not to be had we ask again and again.
    let feed: EventSource | null = null;
    const whole = async () => {
      try {
        const o = await get<Output>(`/api/v1/runs/${r.id}/output?from=0`, stop.signal);
        if (stopped) return;
        setText(o.text); setNext(o.bytes); setDone(o.state === 'ended');
        ended();
      } catch (err) { if (!stopped) setProblem(err as Problem); }
    };
    const listen = () => {
      feed = new EventSource(`/api/v1/runs/${r.id}/output?from=${state.current.next}`);
      feed.addEventListener('output', (m) => {
        const o: Output = JSON.parse((m as MessageEvent).data);
        setText((old) => old + o.text);
        setNext(o.next);
        state.current.next = o.next;
      });
      feed.addEventListener('end', () => { feed?.close(); void whole(); });
      feed.onerror = () => { if (feed?.readyState === EventSource.CLOSED && !stopped) timer = window.setTimeout(look, 500); };
    };
    if (r.state === 'running' && following.value) listen();
    else void look();
    return () => { stopped = true; stop.abort(); feed?.close(); clearTimeout(timer); };
  }, [r.id, following.value]);

  const lines = useMemo(() => {
    const s = fresh();
    const raw = text.split('\n');
    if (raw[raw.length - 1] === '') raw.pop();
    return raw.slice(-mostLines).map((l) => { const cut = l.length > longest; return { pieces: line(cut ? l.slice(0, longest) : l, s), cut: cut ? l.length - longest : 0, text: l }; });
  }, [text]);
  const word = search.toLowerCase();
  const shown = useMemo(() => lines.map((l, i) => ({ ...l, n: i + 1 })).filter((l) => !word || bare(l.text).toLowerCase().includes(word)), [lines, word]);
  useEffect(() => {
    const b = box.current;
    if (b && stick && !word) b.scrollTop = b.scrollHeight;
  }, [shown, stick]);
  const scrolled = () => {
    const b = box.current!;
    const end = b.scrollHeight - b.scrollTop - b.clientHeight < 24;
    if (end !== stick) setStick(end);
  };
  return (
    <Card title={<>{t('Output')} <span class="count">{size(next)}</span> {r.output_truncated && <span class="tag warn">{t('the middle is left out')}</span>}</>}
      more={<>
        {!done && <Badge tone="busy">{t('following')}</Badge>}
        <input type="search" class="thin" aria-label={t('Search in the output')} placeholder={t('Search')} value={search} onInput={(e) => setSearch(e.currentTarget.value)} style={{ width: '150px' }} />
        {word && <span class="small faint">{t('{n} lines', { n: shown.length })}</span>}
        <Button icon="wrap" aria-pressed={wrap} aria-label={t('Wrap long lines')} title={t('Wrap long lines')} work={() => setWrap(!wrap)} />
        <a class="button bare" href={`/api/v1/runs/${r.id}/output?raw=1`} download={`${r.job}-${r.due}.txt`.replace(/[^\w.-]+/g, '_')} aria-label={t('Download')} title={t('Download')}><Icon name="download" /></a>
      </>}>
      {problem && <div class="in"><ProblemBox problem={problem} /></div>}
      <div class={`out ${wrap ? 'wrap' : ''}`} ref={box} onScroll={scrolled} tabIndex={0} role="log" aria-label={t('Output')} aria-live="off">
        {shown.map((l) => (
          <div key={l.n} class={`l ${word ? 'hit' : ''}`}><span class="n">{l.n}</span><span class="t">{l.pieces.map((p, i) => <Text key={i} p={p} />)}{l.cut > 0 && <span class="odd">{t('+{n} more characters', { n: l.cut.toLocaleString() })}</span>}</span></div>
        ))}
        {shown.length === 0 && <div class="end">{word ? t('Nothing like that') : done ? t('It wrote nothing.') : t('It has written nothing yet.')}</div>}
      </div>
      {!stick && !done && !word && <div class="more-row"><Button icon="down" work={() => setStick(true)}>{t('To the end')}</Button></div>}
    </Card>
  );
}

const Text = ({ p }: { p: Piece }) => (p.odd ? <span class="odd">{p.text}</span> : p.style ? <span class={p.style}>{p.text}</span> : <>{p.text}</>);
