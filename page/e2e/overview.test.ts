import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { enter, launch, visitor, type Looks } from './browser';
import { Cluster, until, wait } from './cluster';

// What the console tells at a glance: the overview, badges, the health of jobs, last night, and nodes that are gone.

let cluster: Cluster, browser: Browser;
before(async () => { [cluster, browser] = await Promise.all([Cluster.start(3, ['--no-samples', '--restart-after', '90s']), launch()]); }, { timeout: 240_000 });
after(async () => { await browser?.close(); await cluster?.stop(); });
const limit = { timeout: 120_000 };
const yearly = { schedule: '0 0 1 1 *' };

async function someone(o: Looks = {}, node = 0) {
  const v = await visitor(browser, o);
  await enter(v.context, cluster.urls[node], cluster.token);
  return v;
}
const go = async (path: string, on: Page, node = 0) => { await on.goto(cluster.urls[node] + path); await on.locator('main h1').first().waitFor(); };
const badge = (page: Page, entry: string) => page.locator('.side nav .item', { hasText: entry }).locator('.n');
const row = (page: Page, job: string) => page.locator('.rows .jobrow', { hasText: job });

/** Runs a job by hand until that run has ended. */
async function ran(id: string) {
  const { request } = await cluster.api('POST', `/api/v1/jobs/${id}/run`, {});
  return until('it has ended', async () => (await cluster.api('GET', `/api/v1/runs?job_id=${id}&state=ended`)).items.find((r: { request: string }) => r.request === request));
}

test('an empty cluster shows the next step; then the overview says what failed, with the last line, and leads to the run', limit, async () => {
  const { page, wrong, context } = await someone();
  await go('/', page);
  await page.getByRole('link', { name: 'Create the first job' }).waitFor();

  const j = await cluster.job({ name: 'noisy', app: 'shop', ...yearly, command: 'echo begun; echo "the disk is full"; exit 3' });
  await ran(j.id);
  const last = await ran(j.id);
  await go('/', page);
  const line = page.locator('table.failed tbody tr', { hasText: 'noisy' });
  await line.getByText('Failing (2×)').waitFor();
  await line.getByText('the disk is full').waitFor();
  await line.getByText('2 of 2').waitFor();
  await until('the badge counts it', async () => (await badge(page, 'Jobs').innerText()).startsWith('1'));
  await line.locator('td.said a').click();
  await page.waitForURL(new RegExp(`/runs/${last.id}$`));
  assert.deepEqual(wrong, []);
  await context.close();
});

test('the list shows the health of each job, the worst first, and asks for rows together', limit, async () => {
  const { page, wrong, context } = await someone(), single: string[] = [];
  page.on('request', (r) => { if (/\/api\/v1\/(runs\?job_id|jobs\/\d+$)/.test(r.url())) single.push(r.url()); });
  const well = await cluster.job({ name: 'a well one', ...yearly, command: 'true' });
  const broken = await cluster.job({ name: 'z broken one', ...yearly, command: 'test -e /tmp/nothing-is-there' });
  const paused = await cluster.job({ name: 'b paused one', ...yearly, command: 'true' });
  await cluster.api('POST', `/api/v1/jobs/${paused.id}/pause`, { reason: 'disks' });
  await Promise.all([ran(well.id), ran(broken.id)]);
  await go('/jobs?q=one', page);
  await row(page, 'z broken one').locator('.badge', { hasText: 'Failing (1×)' }).waitFor();
  assert.deepEqual(await page.locator('.rows .jobrow .name a').allInnerTexts(), ['z broken one', 'a well one', 'b paused one']);
  assert.equal(await row(page, 'z broken one').locator('.badge.good').count(), 0, 'what fails is not green');
  await row(page, 'a well one').locator('.badge.good', { hasText: 'OK' }).waitFor();
  await row(page, 'b paused one').getByText(/^by /).waitFor();

  await page.locator('.foot .pace.live').waitFor();
  await ran(broken.id); // it is heard of while one looks
  await row(page, 'z broken one').getByText('Failing (2×)').waitFor({ timeout: 20_000 });
  await page.locator('.chip', { hasText: 'Paused' }).click();
  await page.waitForURL(/show=paused/);
  assert.deepEqual(await page.locator('.rows .jobrow .name a').allInnerTexts(), ['b paused one']);
  assert.deepEqual(single, [], 'no row asks by itself');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('the strip of scheduled times says why a paused job did not run, and nothing is typed', limit, async () => {
  const { page, wrong, context } = await someone();
  const j = await cluster.job({ name: 'ticking', app: 'night', every: '5s', command: 'true' });
  await until('it ran', async () => (await cluster.api('GET', `/api/v1/runs?job_id=${j.id}&outcome=succeeded`)).items.length > 0);
  await cluster.api('POST', `/api/v1/jobs/${j.id}/pause`, { reason: 'the floor is painted' });
  await wait(12_000);
  const [from, to] = [Date.now() - 60_000, Date.now()].map((at) => encodeURIComponent(new Date(at).toISOString()));
  await go(`/timeline/slots?from=${from}&to=${to}&app=night`, page); // as a click on a part of a longer range does
  const strip = page.getByRole('group', { name: 'Scheduled times of ticking' });
  await strip.getByRole('button', { name: /succeeded/ }).first().waitFor();
  await strip.getByRole('button', { name: /paused/ }).last().click();
  await page.getByRole('dialog').getByText('paused', { exact: false }).first().waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  await strip.getByRole('button', { name: /succeeded/ }).first().click();
  await page.waitForURL(/\/runs\/\d+$/);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('lists of runs have ranges and apps to choose from', limit, async () => {
  const { page, wrong, context } = await someone();
  const asked = (has: RegExp) => page.waitForRequest((r) => r.url().includes('/api/v1/runs?') && has.test(r.url()));
  await go('/runs', page);
  await Promise.all([asked(/from=.*to=/), page.getByRole('button', { name: 'Last night' }).click()]);
  await page.waitForURL(/last=night/);
  await Promise.all([asked(/app=shop/), page.getByLabel('App', { exact: true }).fill('shop')]);
  await page.getByRole('button', { name: 'Today' }).click();
  await page.locator('table.runs tbody tr', { hasText: 'noisy' }).first().waitFor();
  await go('/timeline', page);
  await Promise.all([asked(/app=shop/), page.getByLabel('App', { exact: true }).fill('shop')]);
  await page.getByRole('button', { name: 'Last night' }).click();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('keys: rows, screens, help; and the palette does what it is told', limit, async () => {
  const { page, wrong, context } = await someone();
  const palette = page.getByRole('dialog', { name: 'Search' });
  const build = await cluster.job({ name: 'build the page', app: 'shop', ...yearly, command: 'echo built' });
  await go('/jobs?q=one', page);
  await row(page, 'z broken one').waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'z broken one');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).getByText('Open the row').waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.keyboard.press('a');
  await page.getByRole('heading', { name: 'Alerts', level: 1 }).waitFor();

  await page.keyboard.press('/');
  await palette.getByRole('combobox').fill('run bldpg'); // some letters of it
  await palette.getByRole('option', { name: 'Run now: build the page' }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/runs\/\d+$/);
  await page.getByRole('log').getByText('built').waitFor();

  await go(`/jobs/${build.id}`, page);
  await page.keyboard.press('Control+k');
  await palette.getByRole('option').first().getByText('build the page').waitFor(); // it was looked at last
  await palette.getByRole('combobox').fill('why build the');
  await palette.getByRole('option', { name: 'Why?: build the page' }).click();
  await page.waitForURL(new RegExp(`/jobs/${build.id}/why`));
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a job that fails now and then is unstable, and a failed run says whether that is over', limit, async () => {
  const { page, wrong, context } = await someone();
  const spec = { name: 'wavers', app: 'shop', ...yearly }, j = await cluster.job({ ...spec, command: 'exit 1' });
  const failed = await ran(j.id);
  await go(`/runs/${failed.id}`, page);
  await page.getByText('Still failing: 1 in a row').waitFor();

  await cluster.job({ ...spec, command: 'true' });
  const good = await ran(j.id);
  await go('/jobs?q=wavers', page);
  await row(page, 'wavers').locator('.badge.warn', { hasText: 'Unstable (1/2)' }).waitFor();
  await go(`/runs/${failed.id}`, page);
  await page.locator('.notice', { hasText: 'It has succeeded since.' }).getByRole('link').click();
  await page.waitForURL(new RegExp(`/runs/${good.id}$`));

  await go(`/jobs/${j.id}/definition`, page);
  await page.locator('.facts div', { hasText: 'Defaults' }).getByText('overlap: skip').waitFor();
  assert.equal(await page.locator('.facts dt code', { hasText: 'misfire' }).count(), 0, 'what nobody has set does not look as if it were set');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('without a rule nobody is notified, and that is said; runs that did not succeed are one choice', limit, async () => {
  const { page, wrong, context } = await someone();
  await go('/alerts', page);
  await page.getByText('Nobody is notified').waitFor();
  await go('/', page);
  await page.locator('.tile', { hasText: 'nobody is notified' }).waitFor();
  await cluster.api('PUT', '/api/v1/alerts/channels/chat', { type: 'webhook', url: 'https://chat.invalid/hook' });
  await cluster.api('PUT', '/api/v1/alerts/rules/nights', { on: ['never_ran'], never_ran: '24h', jobs: ['shop/wavers'], channels: ['chat'] });
  await go('/alerts', page);
  await page.getByText('No active alerts').waitFor();

  await page.route('**/api/v1/runs?*outcome=unsuccessful*', (route) => route.fulfill({ json: { items: [] } }));
  await go('/runs', page);
  await Promise.all([page.waitForRequest((r) => r.url().includes('outcome=unsuccessful')), page.getByLabel('Result').selectOption('unsuccessful')]);
  assert.deepEqual(wrong, []);
  await context.close();

  const narrow = await someone({ narrow: true, zh: true });
  await go('/runs', narrow.page); // the node and the reason have a line of their own
  await narrow.page.locator('table.runs tr', { hasText: 'wavers' }).last().locator('.reason').getByText(/^node-\d$/).waitFor();
  await narrow.page.locator('table.runs tr', { hasText: 'wavers' }).last().getByText('退出码 1').waitFor();
  await narrow.page.goto(cluster.urls[0] + '/jobs/987654');
  await narrow.page.getByText('它可能已被删除').waitFor();
  await narrow.context.close();
});

test('old addresses lead to where things are, and unknown ones are told by the page', limit, async () => {
  const { page, wrong, context } = await someone();
  for (const [old, is] of Object.entries({
    '/activity': '/audit', '/activity?kind=job&action=delete': '/audit?kind=job&action=delete', '/activity/alerts/rules': '/alerts/rules', '/activity/pauses': '/settings/pauses', '/activity/tokens': '/settings/tokens', '/settings#retention': '/settings/retention',
  })) {
    await go(old, page);
    await page.waitForURL(cluster.urls[0] + is);
  }
  const answer = await page.goto(cluster.urls[0] + '/nope/at-all');
  assert.equal(answer?.status(), 404);
  await page.getByText('Page not found').waitFor();
  await page.locator('.empty').getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('the frame does not wait until the node has said who one is', limit, async () => {
  const { page, wrong, context } = await someone();
  let answer = () => {};
  const later = new Promise<void>((ok) => { answer = ok; });
  await page.route('**/api/v1/me', async (route) => { await later; await route.continue(); });
  await page.goto(cluster.urls[0] + '/jobs');
  await page.locator('.side nav').getByText('Overview').waitFor({ timeout: 20_000 });
  const box = await page.locator('main .loading').boundingBox();
  assert.ok(box && box.width > 300, `the skeleton is ${box?.width} pixels wide`);
  answer();
  await page.getByRole('heading', { name: 'Jobs', level: 1 }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a dead node does not take the page along, and stays in the cluster in red with what was lost', { timeout: 180_000 }, async () => {
  const { page, wrong, context } = await someone({}, 1);
  const j = await cluster.job({ name: 'long', ...yearly, command: 'sleep 300', selector: 'node=node-2' });
  await cluster.api('POST', `/api/v1/jobs/${j.id}/run`, {});
  await until('it runs', async () => (await cluster.api('GET', `/api/v1/runs?job_id=${j.id}&state=running`)).items.length === 1);
  await go('/jobs', page, 1);
  await until('all parts of the page are there', async () => page.evaluate(() => performance.getEntriesByType('resource').some((e) => /cluster-.*\.js/.test(e.name)) && performance.getEntriesByType('resource').some((e) => e.name.endsWith('/api/v1/cluster'))));
  await wait(1500);

  process.kill(await cluster.pid(1), 'SIGKILL');
  await page.getByRole('link', { name: 'Cluster', exact: true }).click(); // a screen that was not open yet
  await page.getByRole('heading', { name: 'Cluster', level: 1 }).waitFor();
  await page.getByText('is not responding, so this page may be out of date', { exact: false }).waitFor();
  const on = page.getByRole('link', { name: /^Continue on node-/ }).first();
  assert.equal(new URL((await on.getAttribute('href'))!).pathname, '/cluster', 'the other node is asked for the same screen');

  const other = await someone({}, 0);
  await go('/cluster', other.page);
  const gone = other.page.locator('tr.gone', { hasText: 'node-2' });
  await gone.getByText('gone', { exact: true }).waitFor();
  await gone.getByRole('link', { name: '1 run lost' }).waitFor();
  await until('the badge says so', async () => (await badge(other.page, 'Cluster').innerText()).startsWith('1'));
  await go('/', other.page);
  await other.page.locator('tr', { hasText: 'node-2' }).getByText('gone', { exact: true }).waitFor();
  assert.deepEqual([...wrong, ...other.wrong], []);
  await other.context.close();
  await context.close();
});
