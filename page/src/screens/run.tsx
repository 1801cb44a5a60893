import type { JSX } from 'preact';
import { memo } from 'preact/compat';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { asProblem, download, get, may, now, query, type Problem } from '../api';
import type { Piece } from '../ansi';
import { explained, t } from '../i18n';
import { following, second, upTo, useGet } from '../live';
import { killRun, runDueAgain, runNow } from '../parts/actions';
import { Badge, Button, Card, copy, Empty, Head, Loading, Notice, OutcomeBadge, outcomeOf, ProblemBox, problemDetail, Range, Reason, toneOf, unsuccessful, When } from '../parts/basic';
import { Icon } from '../parts/icon';
import { Lines } from '../parts/lines';
import { Late, Took, triggerText } from '../parts/runtable';
import { Link } from '../router';
import { openStream } from '../stream';
import { clock, durationSaid, inZone, ms, size, span, zoneShown } from '../time';
import type { Explanation, HTTPAnswer, Job, Output, OutputEvent, Page, Run } from '../types';

export function RunScreen({ id }: { id: string }) {
  const [ended, setEnded] = useState(false), [errors, setErrors] = useState<string[]>([]), [http, setHTTP] = useState<HTTPAnswer>();
  const { data: r, problem, loading, reload } = useGet<Run>(`/api/v1/runs/${encodeURIComponent(id)}`, { every: ended ? 0 : 1500, on: ['run'] });
  const wrong = !!r?.outcome && (unsuccessful.includes(r.outcome) || r.outcome === 'missed'); // then one asks whether it is over
  const job = useGet<Job>(r ? `/api/v1/jobs/${r.job_id}` : null, { every: wrong ? 10_000 : 0, on: ['run'], job: r?.job_id });
  useEffect(() => { if (r?.state === 'ended') setEnded(true); }, [r?.state]);
  if (!r) return loading ? <Loading /> : problem?.status === 404 ? <Empty icon="question" title={t('Run not found')}><p>{problemDetail(problem)}</p><Link class="button" to="/runs">{t('Runs')}</Link></Empty> : problem ? <ProblemBox problem={problem} again={reload} /> : <Loading />;
  const j = job.data, zone = j?.timezone;
  return (
    <>
      <Head title={<><bdi>{r.job}</bdi></>} crumb={<><Link to="/runs">{t('Runs')}</Link> / <Link to={`/jobs/${r.job_id}`}><bdi>{r.app === 'default' ? r.job : `${r.app}/${r.job}`}</bdi></Link></>}
        sub={<><OutcomeBadge run={r} /><span>{t('scheduled for')} <When at={r.due} zone={zone} in={zone} long />{zone && zone !== zoneShown() && ` ${zone}`}</span><span>{triggerText(r)}</span></>}>
        {r.state === 'running' && may('operator', r.app) && <Button look="danger" icon="stop" work={() => killRun(r, () => void reload())}>{t('Kill')}</Button>}
        {r.state === 'ended' && j && may('operator', r.app) && (r.trigger === 'manual' || j.at
          ? <Button icon="bolt" work={() => runNow(j, true)}>{t('Run now')}</Button>
          : <><Button icon="history" work={() => runDueAgain(r, j)}>{t('Rerun (same scheduled time)')}</Button><Button icon="bolt" work={() => runNow(j, true)}>{t('Run now')}</Button></>)}
        {r.outcome && r.outcome !== 'succeeded' && j && may('admin', r.app) && <Link class="button" to={`/jobs/${r.job_id}/edit`}><Icon name="edit" />{t('Edit job')}</Link>}
        <Button icon="link" aria-label={t('Copy run ID')} title={t('Copy run ID')} work={() => copy(r.id)} />
      </Head>
      <div class="stack">
        {r.outcome && r.outcome !== 'succeeded' && <WhyNot run={r} job={j} errors={errors} />}
        {wrong && j?.health && <Since run={r} job={j} />}
        <div class="tiles">
          <div class="tile"><span>{r.state === 'running' ? t('Running for') : t('Duration')}</span><b><Took run={r} /></b>{r.started && <small>{r.ended ? <Range from={r.started} to={r.ended} zone={zone} /> : <When at={r.started} zone={zone} in={zone} />}{zone && zone !== zoneShown() && ` ${zone}`}</small>}</div>
          <div class="tile"><span>{t('Delay')}</span><b><Late run={r} /></b></div>
          {r.http_status ? <div class="tile"><span>{t('HTTP status')}</span><b class={r.outcome === 'succeeded' ? '' : 'bad'}>{r.http_status}</b></div>
            : !j?.http && <div class="tile"><span>{r.signal ? t('Signal') : t('Exit code')}</span><b class={r.exit_code ? 'bad' : ''}>{r.signal ?? r.exit_code ?? '—'}</b></div>}
          <Link class="tile" to={`/runs?node=${encodeURIComponent(r.node)}`}><span>{t('Node')}</span><b class="cut">{r.node || '—'}</b></Link>
          <div class="tile"><span>{t('Attempt')}</span><b>{r.attempt}</b>{r.state === 'ended' && !r.final && <small>{t('a retry follows')}</small>}</div>
        </div>
        {r.params && Object.keys(r.params).length > 0 && <Card title={t('Parameters')}><dl class="facts in">{Object.entries(r.params).map(([name, v]) => <div key={name}><dt><code>{name}</code></dt><dd class="mono">{String(v)}</dd></div>)}</dl></Card>}
        {(r.attempt > 1 || !r.final) && <Attempts run={r} zone={zone} />}
        {(r.started || r.output_bytes > 0) && <OutputView key={r.id} run={r} zone={zone} ended={() => void reload()} told={(e, h) => { setErrors(e); setHTTP(h); }} />}
        {http && <Response answer={http} />}
        <p class="faint small mono">{r.id}</p>
      </div>
    </>
  );
}

/** Whether what went wrong is over: how the job has fared since. */
function Since({ run: r, job: j }: { run: Run; job: Job }) {
  const h = j.health!, last = useGet<Run>(h.run_id && h.run_id !== r.id ? `/api/v1/runs/${h.run_id}` : null, { every: 0 }).data;
  const later = last && ms(last.ended) > ms(r.ended) ? <Link to={`/runs/${last.id}`}><When at={last.due} zone={j.timezone} in={j.timezone} long /></Link> : undefined;
  if (h.code === 'failing') {
    const n = (h.failures ?? 1).toLocaleString();
    return <Notice look="bad" icon="history"><b>{h.at_least ? t('Still failing: at least {n} in a row', { n }) : t('Still failing: {n} in a row', { n })}</b>{later && <p>{t('The latest run:')} {later} <OutcomeBadge run={last!} /></p>}</Notice>;
  }
  if (h.outcome !== 'succeeded' || !later) return null;
  return <Notice look="good" icon="check"><b>{t('It has succeeded since.')}</b><p>{t('The latest run:')} {later} <OutcomeBadge run={last!} /></p></Notice>;
}

/** What is known of the response to the request, besides its body. */
function Response({ answer: a }: { answer: HTTPAnswer }) {
  const times: [string, number | undefined][] = [[t('Connected'), a.connected_ms], [t('First byte'), a.first_byte_ms], [t('Complete'), a.complete_ms]];
  return (
    <Card title={<>{t('Response')} <span class="count">{a.proto} {a.status}</span></>}>
      <div class="in">
        <p class="small">{times.map(([label, at]) => <span key={label}>{label} <b class="num">{at === undefined ? '—' : span(at)}</b>{'  '}</span>)}</p>
        {a.headers && a.headers.length > 0 && <table class="headers small mono"><tbody>{a.headers.map(([name, value]) => <tr key={name}><th scope="row">{name}</th><td>{value}</td></tr>)}</tbody></table>}
      </div>
    </Card>
  );
}

/** Why it did not succeed, with the end of its output. */
function WhyNot({ run: r, job: j, errors }: { run: Run; job?: Job; errors: string[] }) {
  const [e, setE] = useState<Explanation>();
  const started = !!r.started;
  useEffect(() => { if (!started) get<Explanation>(`/api/v1/jobs/${r.job_id}/explain${query({ at: r.due })}`).then(setE, () => undefined); }, [r.id, started]);
  const tone = toneOf(outcomeOf(r));
  const advice = r.exit_code === 127 ? t('127: the shell did not find the command. Is it installed on {node}, and in PATH?', { node: r.node })
    : r.exit_code === 126 ? t('126: the file was found, but it is not executable. Check its permissions.')
    : r.outcome === 'failed' && (r.exit_code === 137 || r.signal === 'SIGKILL') ? t('The process was killed from outside, perhaps because memory ran out.')
    : r.outcome === 'timed_out' && j?.timeout ? t('Its timeout is {timeout}. Raise it if the job needs longer.', { timeout: durationSaid(j.timeout) })
    : r.outcome === 'lost' ? t('The node died mid-run, so the work may be half done. Check before you rerun.')
    : '';
  return (
    <Notice look={tone === 'bad' ? 'bad' : tone === 'warn' ? 'warn' : undefined} icon={tone === 'mute' ? 'question' : 'warning'}
      action={<Link class="button" to={`/jobs/${r.job_id}/why?at=${encodeURIComponent(r.due)}`}>{t('Explain')}</Link>}>
      <b>{r.reason ? <Reason run={r} zone={j?.timezone} /> : <bdi>{r.exit_code ? t('exit code {n}', { n: r.exit_code }) : e ? inZone(explained(e.cause, e.answer), j?.timezone) : t('Not successful')}</bdi>}</b>
      {e && r.reason && <p>{inZone(explained(e.cause, e.answer), j?.timezone)}</p>}
      {e && explained(e.cause, e.answer) !== e.answer && <p class="faint small" lang="en">{inZone(e.answer, j?.timezone)}</p>}
      {advice && <p>{advice}</p>}
      {started && errors.length > 0 && <pre class="code" tabIndex={0} aria-label={t('Last error lines')}>{errors.join('\n')}</pre>}
    </Notice>
  );
}

/** Attempts in groups: those by the schedule, and those of each rerun, which count from one again. */
function startsOf(list: Run[]): Run[][] {
  const groups = new Map<string, Run[]>();
  for (const x of list) {
    const key = x.trigger + (x.request ?? '');
    groups.set(key, [...(groups.get(key) ?? []), x]);
  }
  const begin = (g: Run[]) => Math.min(...g.map((x) => ms(x.started)));
  return [...groups.values()].map((g) => g.sort((a, b) => a.attempt - b.attempt)).sort((a, b) => begin(a) - begin(b));
}

/** All attempts of the due time on one line of time. */
function Attempts({ run: r, zone }: { run: Run; zone?: string }) {
  const to = new Date(ms(r.due) + 1).toISOString();
  const { data } = useGet<Page<Run>>(`/api/v1/runs${query({ job_id: r.job_id, from: r.due, to })}`, { on: ['run'], job: r.job_id, read: upTo(200) });
  const list = data?.items.filter((x) => x.due === r.due && x.started) ?? [];
  if (list.some((x) => !x.ended)) void second.value; // its bar grows
  if (list.length < 2) return null;
  const starts = startsOf(list);
  const due = ms(r.due), end = Math.max(...list.map((x) => (x.ended ? ms(x.ended) : now()))), all_ = Math.max(1, end - due);
  return (
    <Card title={t('Attempts')}>
      <div class="in">
        {starts.flatMap((start) => start.map((x, i) => {
          const left = (100 * (ms(x.started) - due)) / all_, width = Math.max(0.6, (100 * ((x.ended ? ms(x.ended) : now()) - ms(x.started))) / all_);
          return [
            starts.length > 1 && i === 0 && <p key={x.id + 'h'} class="faint small">{triggerText(x)} <When at={x.started!} zone={zone} in={zone} long /></p>,
            <div key={x.id} class="attempt">
              <Link to={`/runs/${x.id}`} aria-current={x.id === r.id ? 'page' : undefined}>{x.attempt}. <OutcomeBadge run={x} /></Link>
              <div class="meter" title={`+${span(ms(x.started) - due)}`}><i class={toneOf(outcomeOf(x))} style={{ marginLeft: `${Math.min(99.4, left)}%`, width: `${Math.min(width, 100 - left)}%` }} /></div>
              <span class="small faint num">+{span(ms(x.started) - due)} · {x.node}</span>
            </div>,
          ];
        }))}
      </div>
    </Card>
  );
}

/** The output of a run, growing while it is written. What is followed here may be more than what is kept of it. */
function useOutput(r: Run, ended: () => void) {
  const lines = useRef(new Lines());
  const [version, grown] = useState(0);
  const [bytes, setBytes] = useState(0), [done, setDone] = useState(false), [problem, setProblem] = useState<Problem>();
  const [about, setAbout] = useState<Output>();

  useEffect(() => {
    let stopped = false, timer = 0, next = 0, feed: (() => void) | undefined, streams = false;
    const stop = new AbortController();
    const take = (o: OutputEvent | Output, into: Lines) => {
      if ('pieces' in o) for (const p of o.pieces ?? []) into.piece(p);
      else if ('line' in o) into.piece(o);
      else into.add(o.text ?? ''); // instead of output that was removed
    };
    const show = (these: Lines) => { lines.current = these; grown((v) => v + 1); };
    const put = (o: OutputEvent | Output, into = lines.current) => { take(o, into); show(into); };
    put({ from: 0, next: 0, text: '' }, new Lines());
    setDone(false);
    setBytes(0);
    const read = (from: number) => get<Output>(`/api/v1/runs/${r.id}/output?from=${from}&pieces=true`, stop.signal);
    // An answer has half a MiB of a large output at most. All that is kept is read anew, and shown when it is there.
    const whole = async () => {
      try {
        const all = new Lines();
        let o = await read(0);
        for (let from = -1; !stopped && o.next > from; o = await read(o.next)) {
          take(o, all);
          from = o.next;
          if (lines.current.count === 0 || lines.current === all) show(all); // else nothing moves until all is there
          if (o.next >= o.bytes || o.state !== 'ended') break;
        }
        if (stopped) return;
        setProblem(undefined);
        show(all);
        setAbout(o);
        setBytes(o.bytes);
        setDone(o.state === 'ended');
        ended();
        if (o.pending) timer = window.setTimeout(() => stored(o.bytes), 1500);
      } catch (err) { failed(asProblem(err), whole); }
    };
    // Its node still writes parts of it. Ask for its end alone until they are there.
    const stored = async (end: number) => {
      try {
        const o = await read(end);
        if (stopped) return;
        if (o.pending) timer = window.setTimeout(() => stored(end), 1500);
        else void whole();
      } catch (err) { failed(asProblem(err), () => stored(end)); }
    };
    const failed = (problem: Problem, again: () => void) => {
      if (stopped) return;
      setProblem(problem);
      if (problem.status !== 404) timer = window.setTimeout(again, 3000);
    };
    const look = async () => {
      if ((following.value && !document.hidden) || next === 0) {
        try {
          const o = await read(next);
          if (stopped) return;
          setProblem(undefined);
          // What is kept of a run that ended may leave out its middle: then it is read again from its beginning.
          if (o.state === 'ended' && (next > 0 || o.next < o.bytes || o.pending)) return void whole();
          put(o, next === 0 ? new Lines() : undefined);
          next = o.next;
          setBytes(o.bytes);
          if (o.state === 'ended') { setAbout(o); setDone(true); ended(); return; }
        } catch (err) {
          if (stopped) return;
          const problem = asProblem(err);
          setProblem(problem);
          if (problem.status === 404) return;
        }
      }
      timer = window.setTimeout(look, 700);
    };
    // While it executes there is a stream of what it writes. Where that is not to be had we ask again and again.
    // A browser has six connections for a node by HTTP/1.1: a tab that nobody looks at holds none of them.
    const listen = () => {
      streams = true;
      feed?.();
      if (document.hidden) return;
      feed = openStream(`/api/v1/runs/${r.id}/output?from=${next}&pieces=true`, {
        output: (o: OutputEvent) => {
          put(o);
          setBytes(o.next);
          next = o.next;
        },
        end: (end: { bytes: number; truncated: boolean }) => {
          feed?.();
          streams = false;
          // With what came too fast to be followed, and with the times and streams of the lines.
          if (!end.truncated || lines.current.holes) return void whole();
          setBytes(end.bytes);
          setDone(true);
          ended();
        },
      }, (closed) => { if (closed && !stopped) { streams = false; timer = window.setTimeout(look, 500); } });
    };
    if (r.state === 'running' && following.value) listen();
    else void look();
    const turned = () => { if (streams) listen(); };
    document.addEventListener('visibilitychange', turned);
    return () => { stopped = true; stop.abort(); feed?.(); clearTimeout(timer); document.removeEventListener('visibilitychange', turned); };
  }, [r.id, following.value]);
  return { lines: lines.current, version, bytes, done, problem, about };
}

/** The line to which the address points, as in #L120; 0 without one. */
const linked = () => Number(/^#L(\d+)$/.exec(location.hash)?.[1] ?? 0);

/** The rows with a word. Those that come are looked at alone. */
function useFound(lines: Lines, version: number, word: string): number[] {
  const found = useRef<{ lines: Lines; word: string; gone: number; upTo: number; rows: number[] }>();
  return useMemo(() => {
    if (!word) return [];
    let f = found.current;
    if (!f || f.lines !== lines || f.word !== word || f.gone !== lines.gone) f = found.current = { lines, word, gone: lines.gone, upTo: 0, rows: [] };
    while (f.rows.length && f.rows[f.rows.length - 1] >= f.upTo) f.rows.pop();
    for (let i = f.upTo; i < lines.count; i++) if (lines.has(i, word)) f.rows.push(i);
    f.upTo = Math.max(0, lines.count - 2); // the last line may have grown by now
    return f.rows.slice();
  }, [lines, version, word]);
}

function OutputView({ run: r, zone, ended, told }: { run: Run; zone?: string; ended: () => void; told: (errors: string[], http?: HTTPAnswer) => void }) {
  const { lines, version, bytes, done, problem, about } = useOutput(r, ended);
  useEffect(() => { if (done) told(lines.errors(5), about?.http); }, [done, version, about]);
  const [wrap, setWrap] = useState(true), [search, setSearch] = useState(''), [word, setWord] = useState(''), [only, setOnly] = useState(false), [times, setTimes] = useState(false);
  const [spot, setSpot] = useState({ row: -1, turn: 0 }); // the row that was jumped to
  const [stick, setStick] = useState(r.outcome !== 'succeeded' && !linked()); // the end of what failed says most
  useEffect(() => {
    const timer = setTimeout(() => setWord(search.toLowerCase()), 150);
    return () => clearTimeout(timer);
  }, [search]);

  const jump = (row: number) => { setStick(false); setSpot((s) => ({ row, turn: s.turn + 1 })); };
  useEffect(() => {
    const follow = () => { const row = lines.rowOf(linked()); if (linked() && row >= 0) jump(row); };
    if (done) follow();
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, [done, lines]);

  const rows = useFound(lines, version, word);
  const [nth, setNth] = useState(0);
  useEffect(() => { setNth(0); if (word && rows.length > 0) jump(rows[0]); }, [word]);
  const step = (by: number) => {
    if (rows.length === 0) return;
    const k = (nth + by + rows.length) % rows.length;
    setNth(k);
    jump(rows[k]);
  };
  const typed = (e: KeyboardEvent) => { if (e.key === 'Enter') { e.preventDefault(); step(e.shiftKey ? -1 : 1); } };

  const began = r.started && about ? ms(r.started) : undefined; // else the times of its lines were not read
  return (
    <Card title={<>{t('Output')} <span class="count">{size(bytes)}</span> {r.output_removed ? <span class="tag warn">{t('deleted: the app reached its limit of kept output')}</span> : (r.output_truncated || lines.holes) && <span class="tag warn">{t('the middle is omitted')}</span>}</>}
      more={<>
        {!done && <Badge tone="busy">{t('live')}</Badge>}
        {about?.pending && <Badge tone="busy">{t('more is being stored')}</Badge>}
        <input type="search" class="thin" aria-label={t('Search the output')} placeholder={t('Search')} title={t('Enter: next match. Shift and Enter: previous match.')} value={search} onInput={(e) => setSearch(e.currentTarget.value)} onKeyDown={typed} style={{ width: '150px' }} />
        {word && <>
          <span class="small faint num" role="status">{rows.length === 0 ? t('No matches') : t('{k} of {n}', { k: (nth + 1).toLocaleString(), n: rows.length.toLocaleString() })}</span>
          <Button icon="up" aria-label={t('Previous match')} title={t('Previous match')} disabled={rows.length === 0} work={() => step(-1)} />
          <Button icon="down" aria-label={t('Next match')} title={t('Next match')} disabled={rows.length === 0} work={() => step(1)} />
          <Button icon="filter" aria-pressed={only} aria-label={t('Only lines with matches')} title={t('Only lines with matches')} work={() => setOnly(!only)} />
        </>}
        {done && began !== undefined && <Button icon="clock" aria-pressed={times} aria-label={t('Show times')} title={t('Show times')} work={() => setTimes(!times)} />}
        <Button icon="wrap" aria-pressed={wrap} aria-label={t('Wrap long lines')} title={t('Wrap long lines')} work={() => setWrap(!wrap)} />
        <Button icon="download" aria-label={t('Download')} title={t('Download')} work={() => download(`/api/v1/runs/${r.id}/output?raw=1`, `${r.job}-${r.due}.txt`.replace(/[^\w.-]+/g, '_'))} />
      </>}>
      {problem && <div class="in"><ProblemBox problem={problem} /></div>}
      {lines.lost > 0 && <p class="in faint small">{t('Showing the last {n} lines.', { n: lines.kept.toLocaleString() })}</p>}
      <Rows key={only ? word : ''} lines={lines} rows={only && word ? rows : null} word={word} spot={spot} times={times ? began : undefined} zone={zone} version={version} wrap={wrap} stick={stick && !word} setStick={setStick}>
        {word ? t('No matches') : done ? t('No output') : t('No output yet')}
      </Rows>
      {!stick && !done && !word && <div class="more-row"><Button icon="down" work={() => setStick(true)}>{t('Jump to the end')}</Button></div>}
    </Card>
  );
}

const per = 20; // rows of a block: blocks in sight exist, the others are room
const around = 300; // pixels out of sight that exist at either side

/** The rows that are in sight. How high a block is is guessed until it has been seen. */
function Rows({ lines, rows, word, spot, times, zone, version, wrap, stick, setStick, children }: { lines: Lines; rows: number[] | null; word: string; spot: { row: number; turn: number }; times?: number; zone?: string; version: number; wrap: boolean; stick: boolean; setStick: (on: boolean) => void; children: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ first: 0, last: 3, width: 0 });
  const n = rows ? rows.length : lines.count, blocks = Math.ceil(n / per);
  const row = (k: number) => (rows ? rows[k] : k);

  const heights = useRef<number[]>([]), told = useRef({ lines, gone: 0, wrap, width: 0, n: 0 });
  const h = heights.current, was = told.current, columns = Math.max(20, (place.width - 66) / 7.53);
  if (was.lines !== lines || was.gone !== lines.gone || was.wrap !== wrap || was.width !== place.width) h.length = 0;
  else if (was.n !== n) h.length = Math.min(h.length, Math.floor(was.n / per)); // the last block has got more rows
  told.current = { lines, gone: lines.gone, wrap, width: place.width, n };
  while (h.length < blocks) {
    let sum = 0;
    for (let k = h.length * per; k < Math.min(n, (h.length + 1) * per); k++) sum += wrap ? Math.max(1, Math.ceil(lines.length(row(k)) / columns)) : 1;
    h.push(sum * 19.4);
  }

  const look = () => {
    const el = box.current!;
    let first = 0, y = 0;
    while (first < blocks - 1 && y + h[first] < el.scrollTop - around) y += h[first++];
    let last = first;
    while (last < blocks && y < el.scrollTop + el.clientHeight + around) y += h[last++];
    setPlace((p) => (p.first === first && p.last === last && p.width === el.clientWidth ? p : { first, last, width: el.clientWidth }));
  };
  useLayoutEffect(() => {
    const el = box.current!;
    let y = 0, shift = 0;
    for (let b = 0; b < blocks; b++) {
      const seen = el.querySelector<HTMLElement>(`:scope > [data-block="${b}"]`);
      if (b >= place.last) break;
      if (seen && Math.abs(seen.offsetHeight - h[b]) > 0.5) {
        if (y < el.scrollTop) shift += seen.offsetHeight - h[b]; // what is above must not move what is read
        h[b] = seen.offsetHeight;
      }
      y += h[b];
    }
    if (stick) el.scrollTop = el.scrollHeight;
    else if (shift) el.scrollTop += shift;
    look();
  });
  useEffect(() => {
    const watch = new ResizeObserver(() => look());
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  // A jump: first to where the block is thought to be, and when it exists, to its row.
  useLayoutEffect(() => {
    if (spot.turn === 0 || rows) return;
    const el = box.current!;
    el.scrollTop = h.slice(0, Math.floor(spot.row / per)).reduce((a, b) => a + b, 0) - el.clientHeight / 3;
    look();
    let tries = 0, frame = 0;
    const aim = () => {
      const there = el.querySelector<HTMLElement>(`[data-row="${spot.row}"]`);
      if (there) el.scrollTop += there.getBoundingClientRect().top - el.getBoundingClientRect().top - el.clientHeight / 3;
      if (tries++ < 3) frame = requestAnimationFrame(aim);
    };
    frame = requestAnimationFrame(aim);
    return () => cancelAnimationFrame(frame);
  }, [spot]);
  const scrolled = () => {
    const el = box.current!, end = el.scrollHeight - el.scrollTop - el.clientHeight < 24;
    if (!rows && end !== stick) setStick(end);
    look();
  };

  const first = Math.min(place.first, Math.max(0, blocks - 1)), last = Math.min(place.last, blocks);
  const room = (from: number, to: number) => ({ height: h.slice(from, to).reduce((a, b) => a + b, 0) });
  return (
    <div class={`out ${wrap ? 'wrap' : ''}`} ref={box} onScroll={scrolled} tabIndex={0} role="log" aria-label={t('Output')} aria-live="off">
      <div style={room(0, first)} />
      {Array.from({ length: Math.max(0, last - first) }, (_, i) => <Block key={first + i + lines.gone} at={first + i} lines={lines} rows={rows} word={word} spot={spot.row} times={times} zone={zone} n={n} version={(first + i + 1) * per > n - 2 ? version : 0} />)}
      <div style={room(last, blocks)} />
      {n === 0 && <div class="end">{children}</div>}
    </div>
  );
}

/** The time of day with milliseconds. */
const precise = (at: number, zone?: string) => `${clock(Math.floor(at / 1000) * 1000, zone)}.${String(Math.floor(at) % 1000).padStart(3, '0')}`;

const Block = memo(function Block({ at, lines, rows, word, spot, times, zone, n }: { at: number; lines: Lines; rows: number[] | null; word: string; spot: number; times?: number; zone?: string; n: number; version: number }) {
  const all: JSX.Element[] = [];
  for (let k = at * per; k < Math.min(n, (at + 1) * per); k++) {
    const i = rows ? rows[k] : k, gap = lines.gap(i);
    if (gap) {
      all.push(<div key={k} class="gap" data-row={i}>{gap.lines > 0 ? t('… {size}, {n} lines left out …', { size: size(gap.bytes), n: gap.lines.toLocaleString() }) : t('… {size} left out …', { size: size(gap.bytes) })}</div>);
      continue;
    }

    const number = lines.number(i), stamp = lines.at(i);
    const look = ['l', (rows || (word && lines.has(i, word))) && 'hit', i === spot && 'spot', stamp?.stderr && 'err'].filter(Boolean).join(' ');
    all.push(
      <div key={k} class={look} data-row={i} title={stamp?.stderr ? 'stderr' : undefined}>
        {number ? <a class="n" href={`#L${number}`} tabIndex={-1}>{number}</a> : <span class="n">↪</span>}
        {times !== undefined && <span class="time">{number > 0 && (stamp?.ms ?? 0) >= 0 ? precise(times + (stamp?.ms ?? 0), zone) : '            '}</span>}
        <span class="t">{lines.pieces(i).map((p, j) => <Text key={j} p={p} />)}</span>
      </div>,
    );
  }
  return <div data-block={at}>{all}</div>;
});

const Text = ({ p }: { p: Piece }) => (p.odd ? <span class="odd">{p.text}</span> : p.style ? <span class={p.style}>{p.text}</span> : <>{p.text}</>);
