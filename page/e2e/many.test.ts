import assert from 'node:assert/strict';
import { test } from 'node:test';
import { enter, launch, visitor } from './browser';
import { Cluster, until, wait } from './cluster';

// Ten thousand jobs in the list, of which some four hundred start each minute: what the page costs while nobody touches
// it, and while somebody scrolls. It prints what it measures. Processor time is that of the page's process as the system counts it,
// which depends little on how busy the machine is; frames depend on nothing else, so they are printed alone.

const count = 10_000;

test('ten thousand jobs: memory, an idle page, scrolling', { timeout: 600_000 }, async () => {
  const [cluster, browser] = await Promise.all([Cluster.start(1, ['--no-samples']), launch()]);
  try {
    for (let from = 0; from < count; from += 500) {
      await cluster.api('POST', '/api/v1/apply', { jobs: Array.from({ length: 500 }, (_, i) => from + i).map((n) => ({
        app: `app ${n % 20}`, name: `job ${n}`, command: 'true', labels: { team: `team-${n % 7}` }, ...(n % 3 && { description: `Does the thing of ${n}` }), ...(n % 250 ? { schedule: `${n % 60} * * * *` } : { every: '10s' }),
      })) });
    }
    const { page, context, wrong } = await visitor(browser);
    await enter(context, cluster.urls[0], cluster.token);
    await page.goto(cluster.urls[0] + '/jobs');
    await until('all are listed', async () => (await page.locator('.chip b').first().innerText()) === count.toLocaleString('en-GB'), 120_000);
    await page.locator('.bars .good').first().waitFor();
    await wait(10_000);

    const cdp = await context.newCDPSession(page);
    await cdp.send('Performance.enable');
    const system = await browser.newBrowserCDPSession();
    const cpu = async () => (await system.send('SystemInfo.getProcessInfo')).processInfo.reduce((a, p) => a + (p.type === 'renderer' ? p.cpuTime : 0), 0);
    const figures = async () => Object.fromEntries((await cdp.send('Performance.getMetrics')).metrics.map((m) => [m.name, m.value]));
    const heap = async () => { await cdp.send('HeapProfiler.collectGarbage'); return (await figures()).JSHeapUsedSize / 1e6; };
    const memory = await heap();

    const seconds = 60, before = await figures(), used = await cpu();
    await wait(seconds * 1000);
    const after = await figures();
    const share = (100 * ((await cpu()) - used)) / seconds;
    console.log(`${count} jobs: ${memory.toFixed(1)} MB of heap; idle ${share.toFixed(2)} % of a core, scripts ${((100 * (after.ScriptDuration - before.ScriptDuration)) / seconds).toFixed(2)} %; ${after.Nodes} nodes of the document`);

    await page.evaluate(() => {
      const w = window as unknown as { frames: number[]; long: number };
      w.frames = [];
      w.long = 0;
      new PerformanceObserver((l) => { w.long += l.getEntries().length; }).observe({ type: 'longtask' });
      let last = performance.now();
      const frame = (at: number) => { w.frames.push(at - last); last = at; requestAnimationFrame(frame); };
      requestAnimationFrame(frame);
    });
    await page.mouse.move(800, 500);
    const still = await cpu(), end = Date.now() + 10_000;
    let wheels = 0;
    for (; Date.now() < end; wheels++) {
      await page.mouse.wheel(0, 300);
      await wait(16);
    }
    const moved = await cpu(), last = await figures();
    const { frames, long } = await page.evaluate(() => { const w = window as unknown as { frames: number[]; long: number }; return { frames: w.frames.sort((a, b) => a - b), long: w.long }; });
    const work = (1000 * (moved - still)) / wheels, at = (p: number) => frames[Math.floor(p * frames.length)]?.toFixed(0);
    console.log(`scrolling: ${wheels} turns of the wheel, ${work.toFixed(1)} ms of work for each; frames p50 ${at(0.5)} ms, p95 ${at(0.95)} ms; ${long} tasks over 50 ms; heap ${(await heap()).toFixed(1)} MB`);

    assert.ok(memory < 100, `${memory} MB of heap`);
    assert.ok(share < 5, `an idle page takes ${share} % of a core`);
    assert.ok(work < 150, `${work} ms of work for each turn of the wheel`);
    assert.ok(last.Nodes < 20_000, `${last.Nodes} nodes`);
    const first = await page.locator('.rows .jobrow').first().getAttribute('aria-rowindex');
    assert.ok(Number(first) > 10, `it has scrolled: the first row is ${first}`);

    const typed = Date.now();
    await page.getByLabel('Search jobs').fill('job 9999');
    await until('one is left', async () => (await page.locator('.rows .jobrow').count()) === 1);
    console.log(`search: ${Date.now() - typed} ms`);
    assert.deepEqual(wrong, []);
  } finally {
    await browser.close();
    await cluster.stop();
  }
});
