import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { enter, launch, visitor } from './browser';
import { Cluster, until } from './cluster';

// What the console answers: what happens later belongs to it, an error is no empty list, an address that is wrong is told,
// and a dialog is about what lies below it.

let cluster: Cluster, browser: Browser;
before(async () => { [cluster, browser] = await Promise.all([Cluster.start(1, ['--no-samples']), launch()]); }, { timeout: 240_000 });
after(async () => { await browser?.close(); await cluster?.stop(); });
const limit = { timeout: 120_000 };
const yearly = { schedule: '0 0 1 1 *', command: 'true' };

async function someone() {
  const v = await visitor(browser);
  await enter(v.context, cluster.urls[0], cluster.token);
  return v;
}
const go = async (path: string, on: Page) => { await on.goto(cluster.urls[0] + path); await on.locator('main h1').first().waitFor(); };
const button = (name: string, on: Page) => on.getByRole('button', { name, exact: true });
const start = (id: string) => cluster.api('POST', `/api/v1/jobs/${id}/run`, {});
const begun = (id: string) => until('it has begun', async () => (await cluster.api('GET', `/api/v1/runs?job_id=${id}`)).items[0]);
const away = { status: 503, contentType: 'application/problem+json', json: { type: 'urn:go-crontab:problem:unavailable', title: 'The database does not answer', detail: 'Nothing was changed.' } };

test('a list of the last hour goes on: what is due later appears in it', limit, async () => {
  const { page, wrong, context } = await someone();
  const j = await cluster.job({ name: 'a later one', ...yearly });
  await go('/runs?last=hour', page);
  await page.getByText('No matching runs').waitFor();
  await start(j.id);
  await page.locator('table.runs tbody tr', { hasText: 'a later one' }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('an error is not told as an empty list', limit, async () => {
  const { page, wrong, context } = await someone();
  await page.route('**/api/v1/jobs?*', (route) => route.fulfill(away));
  await page.route('**/api/v1/groups*', (route) => route.fulfill(away));
  for (const [path, empty] of [['/jobs', 'No jobs yet'], ['/jobs?q=x', 'No matching jobs'], ['/settings/groups', 'No groups yet']]) {
    await go(path, page);
    await page.getByRole('alert').getByText('The database does not answer').waitFor();
    assert.equal(await page.getByText(empty).count(), 0, path);
  }

  await page.route('**/api/v1/stats/jobs?*', async (route) => {
    const answer = await (await route.fetch()).json();
    await route.fulfill({ json: { ...answer, totals: { ...answer.totals, missed: 3 } } });
  });
  await page.route('**/api/v1/runs?outcome=missed*', (route) => route.fulfill(away));
  await go('/', page);
  const card = page.locator('.card', { has: page.getByRole('heading', { name: 'Missed last night' }) });
  await card.getByText('The database does not answer').waitFor();
  assert.equal(await page.getByText('No scheduled time was missed last night').count(), 0);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('the scheduled times of a paused job are no holes', limit, async () => {
  const { page, wrong, context } = await someone();
  const j = await cluster.job({ name: 'every second', app: 'calm', schedule: '* * * * * *', command: 'true' });
  await begun(j.id);
  await cluster.api('POST', `/api/v1/jobs/${j.id}/pause`, {});
  const from = new Date(Date.now() + 1000).toISOString(), path = () => `/api/v1/stats/slots?job_id=${j.id}&from=${from}&to=${new Date(Date.now() + 2000).toISOString()}`;
  await until('some pass', async () => (await cluster.api('GET', path())).items[0].slots?.filter((s: { state: string }) => s.state === 'paused').length > 2);
  await go(`/timeline/slots?from=${from}&to=${new Date(Date.now() + 1000).toISOString()}&app=calm`, page);
  const strip = page.getByRole('group', { name: 'Scheduled times of every second' });
  await strip.getByRole('button', { name: /paused/ }).first().waitFor();
  assert.equal(await strip.getByRole('button', { name: /no record/ }).count(), 0);
  await page.getByLabel('Only jobs with problems').check();
  await page.getByText('No problems in this time range').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('an address that is wrong is told, or put right', limit, async () => {
  const { page, wrong, context } = await someone();
  const { id } = await cluster.job({ name: 'addressed', ...yearly });
  for (const path of ['/alerts/messages', '/timeline/foo', `/jobs/${id}/foo`]) {
    await page.goto(cluster.urls[0] + path);
    await page.getByText('Page not found').waitFor();
  }
  for (const [path, is] of [['/jobs?show=x&sort=y', '/jobs'], ['/runs?last=x', '/runs'], ['/upcoming?span=x', '/upcoming'], [`/jobs/${id}/why?range=x`, `/jobs/${id}/why`], ['/alerts?state=x', '/alerts'], ['/timeline/slots?last=x', '/timeline/slots']]) {
    await go(path, page);
    await page.waitForURL(cluster.urls[0] + is);
  }
  await go('/timeline/slots?from=x&to=y', page);
  await page.getByRole('alert').getByText('from', { exact: false }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('going back closes a dialog, and an answer that comes late closes no other one', limit, async () => {
  const { page, wrong, context } = await someone();
  await cluster.job({ name: 'talked about', ...yearly });
  await go('/jobs?q=talked', page);
  await page.getByRole('link', { name: 'talked about' }).click();
  await button('Pause', page).click();
  await page.getByRole('dialog').waitFor();
  await page.goBack();
  await page.waitForURL(/\/jobs\?q=talked/);
  await page.getByRole('dialog').waitFor({ state: 'detached' });

  await page.getByRole('link', { name: 'talked about' }).click();
  let answer = () => {};
  const later = new Promise<void>((ok) => { answer = ok; });
  await page.route('**/pause', async (route) => { await later; await route.continue(); });
  await button('Pause', page).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Pause', exact: true }).click();
  await page.keyboard.press('Escape');
  await button('Backfill', page).click();
  const backfill = page.getByRole('dialog', { name: 'Backfill talked about' });
  await backfill.getByLabel('Parallel runs').fill('7');
  answer();
  await page.getByText('talked about paused').waitFor();
  assert.equal(await backfill.getByLabel('Parallel runs').inputValue(), '7');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('the page of a run shows the retry when it begins, and asks again for the output of which a part failed', limit, async () => {
  const { page, wrong, context } = await someone();
  const j = await cluster.job({ name: 'twice', ...yearly, command: 'echo one; sleep 2; echo two; exit 3', retry: { attempts: 2, backoff: '3s' } });
  let refused = 0;
  await page.route('**/output?from=0&pieces=true', (route) => (route.request().headers().accept === 'text/event-stream' || refused++ > 0 ? route.continue() : route.fulfill(away)));
  await start(j.id);
  await go(`/runs/${(await begun(j.id)).id}`, page);
  await until('the end of the output was refused once', () => refused > 1);
  await page.locator('.badge', { hasText: 'live' }).waitFor({ state: 'detached' });
  await page.getByRole('log').getByText('two').waitFor();
  await until('both attempts are shown', async () => (await page.locator('.attempt').count()) === 2);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a row says that its run has ended before its health is asked for', limit, async () => {
  const { page, wrong, context } = await someone();
  const j = await cluster.job({ name: 'short', ...yearly, command: 'sleep 4' });
  await go('/jobs?q=short', page);
  const state = page.locator('.rows .jobrow', { hasText: 'short' }).locator('.state');
  await page.locator('.foot .pace.live').waitFor();
  await start(j.id);
  await state.getByText('Running').waitFor();
  await page.route('**/api/v1/jobs?ids=*', () => undefined); // nobody answers
  await state.getByText('OK').waitFor({ timeout: 15_000 });
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a stream that is silent for long is opened again', limit, async () => {
  const { page, wrong, context } = await someone();
  await page.addInitScript(() => {
    const [fetch, setTimeout] = [window.fetch, window.setTimeout], w = window as any;
    w.opened = 0;
    window.setTimeout = ((f: () => void, ms: number) => setTimeout(f, ms === 45_000 ? 300 : ms)) as typeof window.setTimeout;
    window.fetch = async (to, o) => {
      if (to !== '/api/v1/events') return fetch(to, o);
      w.opened++;
      const body = new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode('retry: 100\nevent: hello\ndata: {}\n\n')); o!.signal!.addEventListener('abort', () => c.error(new Error('aborted'))); } });
      return new Response(body, { headers: { 'Content-Type': 'text/event-stream' } });
    };
  });
  await go('/jobs', page);
  await until('it is opened again', () => page.evaluate(() => (window as any).opened > 2));
  assert.deepEqual(wrong, []);
  await context.close();
});

test('the editor counts what somebody has set', limit, async () => {
  const { page, wrong, context } = await someone();
  const { id } = await cluster.job({ name: 'usual', every: '1h', command: 'true', retry: { attempts: 2 } });
  await go(`/jobs/${id}/edit`, page);
  await page.getByText('1 set').waitFor(); // the attempts
  assert.equal(await page.getByText(/^\d+ set$/).count(), 1);
  assert.deepEqual(wrong, []);
  await context.close();
});
