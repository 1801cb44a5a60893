import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page, Request } from 'playwright-core';
import { enter, launch, visitor, type Looks } from './browser';
import { Cluster, until, wait } from './cluster';

// What happens at the edges: news that come faster than they are read, answers that never come, texts that cannot be read
// yet, tabs that nobody looks at.

let cluster: Cluster, browser: Browser;
before(async () => { [cluster, browser] = await Promise.all([Cluster.start(1, ['--no-samples']), launch()]); }, { timeout: 240_000 });
after(async () => { await browser?.close(); await cluster?.stop(); });
const limit = { timeout: 180_000 };
const yearly = { schedule: '0 0 1 1 *', command: 'true' };

async function someone(o: Looks = {}) {
  const v = await visitor(browser, o);
  await enter(v.context, cluster.urls[0], cluster.token);
  v.page.on('dialog', (d) => void d.accept().catch(() => undefined)); // "Leave without saving?"
  return v;
}
const go = async (path: string, on: Page) => { await on.goto(cluster.urls[0] + path); await on.locator('main h1').first().waitFor(); };
const button = (name: string, on: Page) => on.getByRole('button', { name, exact: true });
const live = (on: Page) => on.locator('.pace.live').first().waitFor({ state: 'attached' });
const keyOf = (r: Request) => r.headers()['idempotency-key'];

test('the time line follows runs that begin and end all the time, and reads to the end what it has begun to read', limit, async () => {
  const jobs = await Promise.all(['one', 'two'].map((n) => cluster.job({ name: `busy ${n}`, every: '1s', command: 'sleep 0.4' })));
  const { page, wrong, context } = await someone(), loads: number[] = [], aborted: string[] = [];
  const isLoad = (r: Request) => /\/api\/v1\/runs\?from=/.test(r.url()) && !/outcome=|cursor=/.test(r.url());
  page.on('request', (r) => { if (isLoad(r)) loads.push(Date.now()); });
  page.on('requestfailed', (r) => { if (isLoad(r)) aborted.push(r.url()); });
  await go('/timeline', page);
  await live(page);
  await until('it is read again and again', () => loads.length >= 5, 60_000);
  for (let i = 2; i < loads.length; i++) assert.ok(loads[i] - loads[i - 1] > 1300, `read again after ${loads[i] - loads[i - 1]} ms`);
  await page.route('**/api/v1/runs?from=*', async (route) => { await wait(2500); await route.continue().catch(() => undefined); }); // slower than the news
  const before = loads.length;
  await until('and so it is when answers take long', () => loads.length >= before + 3, 60_000);
  assert.deepEqual(aborted, []);
  assert.deepEqual(wrong, []);
  await context.close();
  for (const j of jobs) await cluster.api('DELETE', `/api/v1/jobs/${j.id}`, undefined, { 'If-Match': '*' });
});

test('whoever presses again after no answer repeats the request; after an answer it is another one', limit, async () => {
  const { page, wrong, context } = await someone(), keys: string[] = [];
  const j = await cluster.job({ name: 'pressed', ...yearly });
  await cluster.job({ name: 'pressed too', ...yearly });
  const failFirst = async (glob: string, how: 'abort' | 503) => {
    let n = 0;
    keys.length = 0;
    await page.route(glob, (route) => {
      if (route.request().method() !== 'POST' || route.request().url().includes('dry_run')) return route.continue();
      keys.push(keyOf(route.request()));
      return n++ ? route.continue() : how === 'abort' ? route.abort() : route.fulfill({ status: 503, contentType: 'application/problem+json', json: { title: 'Not now', detail: 'Try again.' } });
    });
  };
  const told = (same: string) => { assert.ok(keys[0], 'there is a key'); assert.equal(keys[1], keys[0], same); assert.notEqual(keys[2], keys[1], 'the next one is new'); };
  await go('/jobs?q=pressed', page);
  await failFirst(`**/api/v1/jobs/${j.id}/run`, 'abort');
  for (let i = 1; i <= 3; i++) {
    await button('Run pressed now', page).click();
    await until('it was sent', () => keys.length === i);
    await page.locator(`[aria-label="Run pressed now"][aria-busy="false"]`).waitFor();
  }
  told('run now');
  await until('two runs, not three', async () => (await cluster.api('GET', `/api/v1/runs?job_id=${j.id}`)).items.length === 2);

  const dialog = page.getByRole('dialog'), bar = page.getByRole('region', { name: 'Selected jobs' });
  await failFirst('**/api/v1/bulk/run?*', 503);
  const bulk = async () => {
    for (const n of ['pressed', 'pressed too']) await page.getByLabel(`Select ${n}`, { exact: true }).check();
    await bar.getByRole('button', { name: 'Run now' }).click();
    await dialog.getByText('2 will change').waitFor();
    await button('Run now', page).last().click();
  };
  await bulk();
  await dialog.getByText('Try again.').waitFor();
  await dialog.getByRole('button', { name: 'Run now' }).click();
  await dialog.waitFor({ state: 'detached' });
  await bulk();
  await until('it was sent', () => keys.length === 3);
  await dialog.waitFor({ state: 'detached' });
  told('bulk');

  await go('/settings/tokens', page);
  await failFirst('**/api/v1/tokens', 503);
  const bodies: { name: string; expires?: string }[] = [];
  page.on('request', (r) => { if (r.method() === 'POST' && r.url().endsWith('/tokens')) bodies.push(r.postDataJSON()); });
  for (const again of [true, false]) {
    await button('New token', page).click();
    await dialog.getByLabel('Name').fill(again ? 'for-ever' : 'another');
    await dialog.getByLabel('Expires').fill('');
    await button('Create token', page).click();
    if (again) {
      await dialog.getByText('Try again.').waitFor();
      await button('Create token', page).click();
    }
    await dialog.getByText('Copy it now. It is shown only once.').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).last().click();
  }
  told('token');
  assert.deepEqual(bodies.map((b) => b.expires), ['never', 'never', 'never'], 'what is left empty never expires');
  const made = (await cluster.api('GET', '/api/v1/tokens')).items.filter((k: { name: string }) => k.name === 'for-ever');
  assert.deepEqual(made.map((k: { expires?: string }) => k.expires), [undefined]);

  await go(`/jobs/${j.id}`, page);
  await failFirst(`**/api/v1/jobs/${j.id}/backfill`, 503);
  await page.locator('.head').getByRole('button', { name: 'Backfill' }).click();
  await dialog.getByLabel('From').fill(`${new Date().getFullYear() - 1}-01-01T00:00`); // there is a scheduled time in it
  await dialog.getByRole('button', { name: 'Start backfill' }).click();
  await dialog.getByText('Try again.').waitFor();
  await dialog.getByRole('button', { name: 'Start backfill' }).click();
  await until('it was sent', () => keys.length === 2);
  assert.equal(keys[1], keys[0], 'backfill');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a text that cannot be read while others change the job: mine is not merged as if it were empty', limit, async () => {
  const { page, wrong, context } = await someone();
  const j = await cluster.job({ name: 'half typed', schedule: '0 5 * * *', command: 'echo one', timeout: '7m' });
  await go(`/jobs/${j.id}/edit`, page);
  const text = page.getByLabel('Source'), was = await text.inputValue(), keep = button('Merge my changes', page);
  await text.fill(was + 'labels: [a\n');
  await page.getByText(/Cannot parse the text: line \d/).waitFor();
  await cluster.api('PATCH', `/api/v1/jobs/${j.id}`, { description: 'theirs' });
  await page.getByText('Someone else changed this job while you were editing').waitFor();
  assert.equal(await keep.isDisabled(), true);
  await text.fill(was + 'owner: me\n');
  await until('it can be pressed', () => keep.isEnabled());
  await keep.click();
  await until('both', async () => (await page.locator('#f-description').inputValue()) === 'theirs');
  for (const line of ['timeout: 7m', 'owner: me', 'command: echo one']) assert.ok((await text.inputValue()).includes(line), line);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('what was typed into a copy is there again, and is no other draft', limit, async () => {
  const { page, wrong, context } = await someone();
  const j = await cluster.job({ name: 'original', ...yearly });
  await go(`/jobs/new?from=${j.id}`, page);
  await until('it is filled in', async () => (await page.locator('#f-name').inputValue()) === 'original 2');
  await page.locator('#f-command').fill('echo mine');
  await until('the text follows', async () => /echo mine/.test(await page.getByLabel('Source').inputValue()));
  await page.reload();
  await page.getByText('Your draft was restored.').waitFor();
  assert.equal(await page.locator('#f-command').inputValue(), 'echo mine');
  await go('/jobs/new', page);
  await page.locator('#f-name').waitFor();
  assert.equal(await page.locator('#f-name').inputValue(), '');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('texts that are YAML and yet cannot be read, and fields where nothing or something else stands', limit, async () => {
  const { page, wrong, context } = await someone();
  await go('/jobs/new', page);
  const text = page.getByLabel('Source');
  await button('Interval', page).click(); // on an empty text
  await until('it is in the text', async () => /every: 10m/.test(await text.inputValue()));
  await text.fill('name: x\ncommand: "true"\nschedule: */5'); // on the way to */5 * * * *
  await page.getByText('Cannot parse the text: line 3').waitFor();
  assert.equal(await page.locator('#f-name').isDisabled(), true);
  await text.fill('name: x\ncommand: "true"\nschedule: "*/5 * * * *"\nretry:\nlimits: none # yet\n');
  await page.getByText(/^every 5 minutes/).waitFor();
  await page.getByText('Retries', { exact: true }).click();
  await page.locator('#f-retry-attempts').fill('3');
  await until('it is in the text', async () => /retry:\s+attempts: 3\n/.test(await text.inputValue()));
  await page.getByText('Command options', { exact: true }).click();
  await page.locator('#f-limits-memory').fill('64MiB');
  await until('it is in the text', async () => /limits:\s+memory: 64MiB/.test(await text.inputValue()));
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a number that is typed slowly stays as it was typed', limit, async () => {
  const { page, wrong, context } = await someone();
  await go('/jobs/new', page);
  await page.locator('#f-name').fill('slow fingers');
  await page.getByText('Command options', { exact: true }).click();
  const cpu = page.locator('#f-limits-cpu');
  for (const k of ['0', '.']) {
    await cpu.press(k);
    await wait(1500); // what it would be is answered, and all is drawn again
  }
  await page.locator('#f-description').fill('drawn again');
  await wait(1500);
  assert.equal(await cpu.inputValue(), '0.');
  await cpu.press('End');
  await cpu.press('5');
  await until('it is a half', async () => /cpu: 0\.5\n/.test(await page.getByLabel('Source').inputValue()));
  assert.equal(await cpu.inputValue(), '0.5');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('the page of a job hears that its app was paused, and goes on', limit, async () => {
  const { page, wrong, context } = await someone();
  const j = await cluster.job({ app: 'quiet', name: 'elsewhere', ...yearly });
  await go(`/jobs/${j.id}`, page);
  await live(page);
  const status = (text: string) => page.locator('.head .badge', { hasText: text }).waitFor({ timeout: 20_000 });
  await status('Has not run');
  await cluster.api('POST', '/api/v1/apps/quiet/pause', {});
  await status('Paused');
  await cluster.api('POST', '/api/v1/apps/quiet/resume', {});
  await status('Has not run');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('due times of a job are its own, and are asked for again after an error', limit, async () => {
  const { page, wrong, context } = await someone();
  const j = await cluster.job({ name: 'shifted', schedule: '0 * * * *', jitter: '30m', command: 'true' });
  let n = 0;
  await page.route(`**/api/v1/jobs/${j.id}/next?*`, (route) => (n++ ? route.continue() : route.abort()));
  await go(`/jobs/${j.id}`, page);
  const { items } = await cluster.api('GET', `/api/v1/jobs/${j.id}/next?n=6`), due = new Date(items[1].due);
  const shown = page.locator('.dues li').first();
  await shown.waitFor();
  assert.ok(n >= 2);
  const is = await page.locator('.dues').innerText(), want = due.toISOString().slice(14, 19);
  assert.ok(is.includes(`:${want}`), `${want} in ${is}`);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a tab that nobody looks at holds no connection, and goes on with the output where it was', limit, async () => {
  const { page, wrong, context } = await someone();
  const j = await cluster.job({ name: 'long talk', schedule: '0 0 1 1 *', command: 'for i in $(seq 1 14); do echo "step $i."; sleep 1; done' });
  await page.addInitScript(() => {
    const all: { url: string; signal: AbortSignal }[] = ((window as any).feeds = []), real = window.fetch;
    window.fetch = (url, o) => {
      if ((o!.headers as Record<string, string>).Accept === 'text/event-stream') all.push({ url: String(url), signal: o!.signal! });
      return real(url, o);
    };
  });
  const look = (on: boolean) => page.evaluate((on) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => !on });
    document.dispatchEvent(new Event('visibilitychange'));
  }, on);
  const feeds = () => page.evaluate(() => (window as any).feeds.filter((f: any) => !f.signal.aborted && f.url.includes('/output')).map((f: any) => f.url) as string[]);
  await go(`/jobs/${j.id}`, page);
  await button('Run now', page).click();
  await page.waitForURL(/\/runs\//);
  const out = page.getByRole('log');
  await out.getByText('step 2.').waitFor();
  await look(false);
  assert.deepEqual(await feeds(), []);
  await wait(2500);
  await look(true);
  const urls = await feeds();
  assert.equal(urls.length, 1);
  assert.match(urls[0], /from=[1-9]/);
  await out.getByText('step 14.').waitFor();
  await page.locator('.head').getByText('succeeded').waitFor();
  assert.equal(await out.locator('.l').count(), 14, 'each line stands there once');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('Esc does not take away the question for a token, however often it is pressed', limit, async () => {
  const { page, wrong, context } = await someone();
  await go('/jobs', page);
  await context.clearCookies();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Nothing you typed is lost', { exact: false }).waitFor();
  for (let i = 0; i < 4; i++) { await page.keyboard.press('Escape'); await wait(200); }
  assert.equal(await dialog.isVisible(), true);
  assert.equal(await dialog.getByRole('button', { name: 'Close' }).count(), 0);
  await dialog.getByLabel('Token').fill(cluster.token);
  await button('Sign in', page).click();
  await dialog.waitFor({ state: 'detached' });
  assert.deepEqual(wrong, []);
  await context.close();
});
