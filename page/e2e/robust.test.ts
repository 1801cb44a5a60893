import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { enter, launch, visitor, type Looks } from './browser';
import { Cluster, until, wait } from './cluster';

// What is too much, too fast, too late or gone: output of megabytes, clocks that are wrong, nodes that die.

let cluster: Cluster, browser: Browser;
before(async () => { [cluster, browser] = await Promise.all([Cluster.start(3, ['--no-samples']), launch()]); }, { timeout: 240_000 });
after(async () => { await browser?.close(); await cluster?.stop(); });
const limit = { timeout: 180_000 };

async function someone(o: Looks = {}, node = 0) {
  const v = await visitor(browser, o);
  await enter(v.context, cluster.urls[node], cluster.token);
  return v;
}
const go = async (path: string, on: Page, node = 0) => { await on.goto(cluster.urls[node] + path); await on.locator('main h1').first().waitFor(); };

/** Runs a job once and tells the id of the run as soon as it has begun. */
async function run(command: string, more: Record<string, unknown> = {}) {
  const j = await cluster.job({ name: 'writer', schedule: '0 0 1 1 *', command, ...more });
  const { request } = await cluster.api('POST', `/api/v1/jobs/${j.id}/run`, {});
  return until('it has begun', async () => (await cluster.api('GET', `/api/v1/runs?job_id=${j.id}&limit=5`)).items.find((r: { request: string }) => r.request === request));
}
const over = (id: string) => until('it is over', async () => (await cluster.api('GET', `/api/v1/runs/${id}`)).state === 'ended', 90_000);

/** A run of which the page is told that it wrote what a function makes there. */
async function wrote(make: () => string, on: Page) {
  const r = await run('echo');
  await over(r.id);
  await on.addInitScript(`{
    const text = (${make})(), real = fetch;
    window.fetch = (to, o) => !String(to).includes('/output?from=0') ? real(to, o)
      : Promise.resolve(Response.json({ id: '${r.id}', state: 'ended', outcome: 'succeeded', from: 0, next: text.length, bytes: text.length, text }));
  }`);
  await go(`/runs/${r.id}`, on);
  return on.getByRole('log');
}
const elements = (on: Page) => on.evaluate(() => document.querySelectorAll('main *').length);
/** How long the page takes to come round to something new. */
const answers = async (on: Page) => { const began = Date.now(); await on.evaluate(() => new Promise((ok) => requestAnimationFrame(() => setTimeout(ok)))); return Date.now() - began; };

test('ten megabytes of lines: few of them exist, all can be reached and searched', limit, async () => {
  const { page, wrong, context } = await someone();
  const out = await wrote(() => Array.from({ length: 170_000 }, (_, i) => `line ${i + 1} of very many lines, the last is 170000\n`).join(''), page);
  await out.getByText('line 1 of very', { exact: false }).waitFor();
  assert.ok((await elements(page)) < 1500, `${await elements(page)} elements`);
  await out.evaluate((el) => { el.scrollTop = el.scrollHeight; });
  await out.getByText('line 170000 of very', { exact: false }).waitFor();
  await out.evaluate((el) => { el.scrollTop = el.scrollHeight / 2; });
  await until('the middle is there', async () => /line 8[45]\d\d\d of/.test(await out.innerText()));
  const top = await out.locator('.l .n').first().innerText();
  assert.match(await out.locator('.l').first().innerText(), new RegExp(`line ${top} of`), 'numbers are those of the lines');
  await page.getByLabel('Search the output').fill('Line 99999 ');
  await until('it is jumped to', async () => (await out.locator('.l.spot').innerText().catch(() => '')).includes('line 99999 of'));
  await page.getByRole('button', { name: 'Only lines with matches' }).click();
  await until('one line is left', async () => (await out.locator('.l').count()) === 1);
  assert.match(await out.innerText(), /99999\s+line 99999 of/);
  await page.getByLabel('Search the output').fill('very many');
  await page.getByText('1 of 170,000').waitFor();
  assert.ok((await elements(page)) < 1500, `${await elements(page)} elements`);
  assert.ok((await answers(page)) < 3000);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a line of ten megabytes, with and without wrapping', limit, async () => {
  const { page, wrong, context } = await someone();
  const out = await wrote(() => 'begin ' + 'x'.repeat(9_000_000) + ' needle ' + 'y'.repeat(1_000_000) + ' end\nthe second\n', page);
  await out.getByText('begin xxx', { exact: false }).waitFor();
  assert.ok((await elements(page)) < 800, `${await elements(page)} elements`);
  assert.ok((await page.evaluate(() => document.querySelector('.out')!.textContent!.length)) < 500_000);
  await out.evaluate((el) => { el.scrollTop = el.scrollHeight; });
  await until('its end', async () => { await out.evaluate((el) => { el.scrollTop = el.scrollHeight; }); return /y end\s+2\s+the second/.test(await out.innerText()); });
  await page.getByLabel('Search the output').fill('needle');
  await page.getByRole('button', { name: 'Only lines with matches' }).click();
  await until('the part with it is left', async () => { const n = await out.locator('.l').count(); return n >= 1 && n <= 2; });
  await page.getByLabel('Search the output').fill('');
  await page.getByLabel('Wrap long lines').click();
  await until('it is one row high for each part', async () => (await out.evaluate((el) => el.scrollHeight)) < 70_000);
  assert.ok((await answers(page)) < 3000);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('invalid UTF-8, escape codes, direction marks and scripts: shown as what they are, downloaded as they were', limit, async () => {
  const { page, wrong, context } = await someone();
  const r = await run(`printf '\\033[31mred\\033[0m \\033]0;title\\007\\342\\200\\256evil\\342\\200\\254 \\xff\\xfe <script>document.title="run"</script><img src=x onerror=alert(1)>\\n10%%\\r55%%\\r100%%\\r\\n'; printf '\\033[32mgreen\\nstill\\033[0m plain\\n\\0nul\\n'`);
  await over(r.id);
  await go(`/runs/${r.id}`, page);
  const out = page.getByRole('log');
  await out.getByText('100%', { exact: true }).waitFor();
  const text = await out.innerText();
  assert.match(text, /red\s.*U\+202E.*evil.*U\+202C/s);
  assert.match(text, /<script>document\.title="run"<\/script><img/);
  assert.doesNotMatch(text, /55%|title\x07|\u202e/);
  assert.equal(await out.locator('.f-1').innerText(), 'red');
  assert.deepEqual(await out.locator('.f-2').allInnerTexts(), ['green', 'still'], 'colours outlive a line');
  assert.equal(await page.locator('main script, main img').count(), 0);
  assert.notEqual(await page.title(), 'run');
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).click()]);
  const chunks: Buffer[] = [];
  for await (const c of await download.createReadStream()) chunks.push(c as Buffer);
  assert.deepEqual(Buffer.concat(chunks), Buffer.from('\x1b[31mred\x1b[0m \x1b]0;title\x07\u202eevil\u202c \xff\xfe <script>document.title="run"</script><img src=x onerror=alert(1)>\n10%\r55%\r100%\r\n\x1b[32mgreen\nstill\x1b[0m plain\n\0nul\n'.split(/([\xff\xfe]+)/).map((s) => Buffer.from(s, /^[\xff\xfe]/.test(s) ? 'latin1' : 'utf8')).reduce((a, b) => Buffer.concat([a, b]))));
  assert.deepEqual(wrong, []);
  await context.close();
});

test('ten thousand lines a second for ten seconds: followed, and the page still answers', limit, async () => {
  const { page, wrong, context } = await someone();
  const r = await run('for s in 1 2 3 4 5 6 7 8 9 10; do seq -f "line %.0f" $(( (s-1)*10000+1 )) $((s*10000)); sleep 1; done; echo the end');
  await go(`/runs/${r.id}`, page);
  const out = page.getByRole('log');
  await out.getByText(/line \d+/).first().waitFor();
  let slowest = 0, most = 0;
  for (let ended = false; !ended;) {
    slowest = Math.max(slowest, await answers(page));
    most = Math.max(most, await elements(page));
    ended = (await cluster.api('GET', `/api/v1/runs/${r.id}`)).state === 'ended';
    await wait(200);
  }
  await page.locator('.head').getByText('succeeded').waitFor();
  await out.evaluate((el) => { el.scrollTop = el.scrollHeight; });
  await out.getByText('the end', { exact: true }).waitFor();
  console.log(`fast output: slowest answer ${slowest} ms, at most ${most} elements`);
  assert.ok(most < 1500, `${most} elements`);
  assert.ok(slowest < 5000, `${slowest} ms`);
  await page.getByText('the middle is omitted').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

for (const hours of [1, -1]) {
  test(`the browser's clock is ${hours > 0 ? 'an hour fast' : 'an hour slow'}: times are the cluster's`, limit, async () => {
    const { page, wrong, context } = await someone();
    await page.addInitScript((off) => {
      const Real = Date;
      class Wrong extends Real {
        constructor(...a: any[]) { super(...((a.length ? a : [Real.now() + off]) as [])); }
        static now() { return Real.now() + off; }
      }
      (window as any).Date = Wrong;
    }, hours * 3600_000);
    const soon = await cluster.job({ name: 'soon', at: new Date(Date.now() + 600_000).toISOString(), command: 'true' });
    await go(`/jobs/${soon.id}`, page);
    await page.locator('.head').getByText(/in (9|10) m/).waitFor();
    await page.getByText("This browser's clock is off by", { exact: false }).waitFor();
    const r = await run('sleep 8');
    await go(`/runs/${r.id}`, page);
    const took = () => page.locator('.tile').filter({ hasText: 'Running for' }).locator('b').innerText();
    await until('it counts up from its start', async () => /^[1-9] s$|^1\d s$/.test(await took()));
    const late = await page.locator('.tile').filter({ hasText: 'Delay' }).locator('b').innerText();
    assert.match(late, /ms$|^\d+(\.\d)? s$/, late);
    await over(r.id);
    await go('/jobs', page);
    await page.locator('.jobrow', { hasText: 'writer' }).locator('.last').getByText(/just now|^\d+ s ago|^1 m/).waitFor();
    await page.locator('.jobrow', { hasText: 'soon' }).locator('.due').getByText(/in (8|9|10) m/).waitFor();
    await go('/cluster', page);
    const ages = await page.locator('table tbody tr td:nth-child(4)').allInnerTexts();
    for (const a of ages) assert.match(a, / m?s$/, `age of a lease: ${a}`);
    for (const up of await page.locator('table tbody tr td:nth-child(6)').allInnerTexts()) assert.doesNotMatch(up, /h|^0 s/, `up for: ${up}`);
    assert.deepEqual(wrong, []);
    await context.close();
  });
}

test('nodes die one after the other, then all: the page keeps what it shows, and goes on when they are back', { timeout: 240_000 }, async () => {
  const { page, context, wrong } = await someone({}, 1);
  await cluster.job({ name: 'beat', every: '5s', command: 'true' });
  await go('/jobs', page, 1);
  const row = page.getByRole('link', { name: 'beat', exact: true }), gone = page.getByText('is not responding, so this page may be out of date', { exact: false });
  await row.waitFor();
  await until('it knows the others', async () => page.evaluate(() => performance.getEntriesByType('resource').some((e) => e.name.endsWith('/api/v1/cluster'))));
  await wait(1000);
  const pids = await Promise.all([0, 1, 2].map((n) => cluster.pid(n)));
  process.kill(pids[1], 'SIGKILL');
  await gone.waitFor();
  const offered = page.getByRole('link', { name: /^Continue on node-/ });
  assert.deepEqual((await offered.evaluateAll((l: HTMLAnchorElement[]) => l.map((a) => new URL(a.href).host))).sort(), [cluster.urls[0], cluster.urls[2]].map((u) => new URL(u).host).sort());
  process.kill(pids[0], 'SIGKILL');
  process.kill(pids[2], 'SIGKILL');
  await wait(3000);
  assert.equal(await row.count(), 1, 'what was shown stays');
  await until('the page has noticed that its node is back', async () => (await gone.count()) === 0, 120_000);
  const shown = async () => page.locator('.jobrow', { hasText: 'beat' }).locator('.bars').getAttribute('aria-label');
  const before = await shown();
  await until('it is live again', async () => (await shown()) !== before || (await page.locator('.jobrow', { hasText: 'beat' }).locator('.last').innerText()).includes('just now'), 60_000);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a large output with a gap: true line numbers, find in context, stderr, times and links to lines', limit, async () => {
  const { page, wrong, context } = await someone();
  const r = await run(`seq -f 'line %.0f of many, with some more words to make it longer' 1 40000; sleep .3; echo 'error: no such table' >&2; sleep .3; echo the end; exit 3`, { output: { keep: '256KiB', mark_stderr: true } });
  await over(r.id);
  await go(`/runs/${r.id}`, page);
  const out = page.getByRole('log');
  const numberOf = async (text: string) => Number(await out.locator('.l', { hasText: text }).locator('.n').innerText());

  await page.locator('.notice pre').getByText('error: no such table').waitFor();
  await out.locator('.l.err').getByText('error: no such table').waitFor();
  assert.equal(await numberOf('error: no such table'), 40_001);
  assert.equal(await numberOf('the end'), 40_002);

  await page.getByLabel('Search the output').fill('of many');
  await page.getByText(/^1 of /).waitFor();
  await until('the first match', async () => (await out.locator('.l.spot .n').innerText().catch(() => '')) === '1');
  await page.getByLabel('Search the output').press('Shift+Enter');
  await until('the last match, with what is around it', async () => (await out.locator('.l.spot .n').innerText().catch(() => '')) === '40000');
  assert.equal(await numberOf('the end'), 40_002);
  await page.getByLabel('Search the output').fill('');

  const gap = out.locator('.gap');
  await until('the gap', async () => { await out.evaluate((el) => { el.scrollTop = el.scrollHeight / 2; }); return (await gap.count()) === 1; });
  const [, left] = /, ([\d,]+) lines left out/.exec(await gap.innerText())!;
  const before = await gap.evaluate((el) => el.closest('.out')!.querySelectorAll('.l').length);
  assert.ok(before > 0 && Number(left.replace(/,/g, '')) > 30_000, left);

  await page.getByRole('button', { name: 'Show times' }).click();
  await out.locator('.l .time').getByText(/^\d\d:\d\d:\d\d\.\d{3}$/).first().waitFor();

  await page.goto(page.url().split('#')[0] + '#L120');
  await page.reload();
  await until('the line of the link', async () => (await out.locator('.l.spot').innerText().catch(() => '')).includes('line 120 of'));
  assert.deepEqual(wrong, []);
  await context.close();
});
