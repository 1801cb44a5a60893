import { useEffect, useMemo, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { lang, t } from '../i18n';
import { theme } from '../theme';
import { span, stamp, zoneShown } from '../time';

export interface Series { label: string; colour: string; points?: boolean; values: (number | null)[] }

/** Lines and words at powers of ten alone. */
const tens = (_u: uPlot, splits: number[]) => splits.map((v) => (Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 0.001 ? v : null));

const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A plot over time: x in seconds, y in milliseconds. A click tells which point was meant. */
export function Plot({ x, series, label, click, y = span }: { x: number[]; series: Series[]; label: string; click?: (i: number) => void; y?: (v: number) => string }) {
  const ref = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const on = useRef(click);
  on.current = click;
  const { values, log, top, above } = useMemo(() => scaled(series), [series]);
  const data = useMemo(() => [x, ...values] as uPlot.AlignedData, [x, values]);
  const shape = series.map((s) => s.label + s.colour).join() + theme.value + lang.value + zoneShown() + log;
  useEffect(() => {
    const box = ref.current!;
    const axis = { stroke: css('--faint'), grid: { stroke: css('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' };
    const p = new uPlot({
      width: box.clientWidth, height: box.clientHeight || 200, padding: [10, 26, 0, 0], // half of the last time, which may stand at the edge
      tzDate: (s) => uPlot.tzDate(new Date(s * 1000), zoneShown()),
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 } },
      legend: { show: false },
      scales: { x: { time: true }, y: log ? { distr: 3, log: 10 } : { range: (_u, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
      axes: [
        { ...axis, size: 28, space: 68, values: (_u, v) => v.map((s, i) => { const step = v.length > 1 ? v[1] - v[0] : 60, text = stamp(s * 1000); return step >= 86400 || (i > 0 && text.slice(11, 16) === '00:00') ? text.slice(5, 10) : step < 60 ? text.slice(11) : text.slice(11, 16); }) },
        { ...axis, size: 64, values: (_u, v) => v.map((n) => (n === null ? '' : y(n))), ...(log ? { grid: { ...axis.grid, filter: tens }, filter: tens } : {}) },
      ],
      series: [{}, ...series.map((s) => ({
        label: s.label, stroke: css(s.colour), width: s.points ? 0 : 1.5, paths: s.points ? () => null : undefined,
        points: { show: s.points || s.values.length < 60, size: 6, fill: css(s.colour), width: 0 }, spanGaps: false,
      }))],
    }, data, box);
    p.over.addEventListener('click', () => { if (p.cursor.idx != null) on.current?.(p.cursor.idx); });
    if (on.current) p.over.style.cursor = 'pointer';
    plot.current = p;
    const watch = new ResizeObserver(() => { if (box.clientWidth) p.setSize({ width: box.clientWidth, height: box.clientHeight || 200 }); });
    watch.observe(box);
    return () => { watch.disconnect(); p.destroy(); plot.current = undefined; };
  }, [shape]);
  useEffect(() => { plot.current?.setData(data); }, [data]);
  return (
    <>
      <div class="plot" ref={ref} role="img" aria-label={label} />
      {above > 0 && <p class="in faint small">{t('{n} values above {top} are drawn at the top.', { n: above, top: y(top) })}</p>}
    </>
  );
}

/** One value that is far above the others must not flatten them: a few are cut off, and more make the scale logarithmic. */
function scaled(series: Series[]) {
  const known = series.flatMap((s) => s.values.filter((v): v is number => v !== null)).sort((a, b) => a - b);
  const usual = known[Math.floor(known.length * 0.97)] ?? 0, most = known[known.length - 1] ?? 0;
  const top = known.length >= 30 && most > 100 * Math.max(1, usual) ? 3 * Math.max(1, usual) : Infinity;
  const log = known.length > 2 && Math.min(top, most) > 30 * Math.max(0.1, known[Math.floor(known.length / 2)]);

  const shown = (v: number | null) => (v === null ? null : Math.min(top, log ? Math.max(0.1, v) : v));
  return { values: series.map((s) => s.values.map(shown)), log, top, above: known.filter((v) => v > top).length };
}
