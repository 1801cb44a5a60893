import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page, Request } from 'playwright-core';
import { enter, launch, visitor, type Looks } from './browser';
import { Cluster, until, wait } from './cluster';

// What takes care that nothing is lost or mistaken: what others wrote, the way back, where one was, whose words are shown,
// and which of them are about what is at hand.

let cluster: Cluster, browser: Browser;
before(async () => { [cluster, browser] = await Promise.all([Cluster.start(1, ['--no-samples']), launch()]); }, { timeout: 240_000 });
after(async () => { await browser?.close(); await cluster?.stop(); });
const limit = { timeout: 180_000 };
const yearly = { schedule: '0 0 1 1 *', command: 'true' };

async function someone(o: Looks = {}) {
  const v = await visitor(browser, o);
  await enter(v.context, cluster.urls[0], cluster.token);
  return v;
}
const go = async (path: string, on: Page) => { await on.goto(cluster.urls[0] + path); await on.locator('main h1').first().waitFor(); };
const button = (name: string, on: Page) => on.getByRole('button', { name, exact: true });
const iso = (at: number) => new Date(at).toISOString();
const run = (id: string, more: object = {}) => ({ id, job_id: '7', job: 'report', app: 'default', due: iso(Date.now()), attempt: 1, final: true, state: 'ended', outcome: 'succeeded', node: 'node-1', session: '', trigger: 'schedule', output_bytes: 0, output_truncated: false, ...more });

/** Runs a command to its end and tells the id of its run. */
async function ran(name: string, command: string, more: Record<string, unknown> = {}) {
  const j = await cluster.job({ name, ...yearly, command, ...more });
  await cluster.api('POST', `/api/v1/jobs/${j.id}/run`, {});
  return until('it has ended', async () => (await cluster.api('GET', `/api/v1/runs?job_id=${j.id}&state=ended`)).items[0]);
}

test('what is new takes the place of nothing, and what is edited is what was read', limit, async () => {
  const { page, wrong, context } = await someone(), dialog = page.getByRole('dialog'), sent: Request[] = [];
  await cluster.api('PUT', '/api/v1/groups/there', { slots: 2 });
  await cluster.api('PUT', '/api/v1/alerts/channels/chat', { type: 'slack', url: 'https://chat.invalid/hook' });
  const stale = { status: 412, contentType: 'application/problem+json', json: { type: 'urn:go-crontab:problem:stale', title: 'Stale', detail: 'It is at another version.' } };
  await page.route(/\/api\/v1\/(groups|secrets|alerts\/(rules|channels))\/./, (route) => {
    if (route.request().method() !== 'PUT') return route.continue();
    sent.push(route.request());
    return route.fulfill(stale);
  });
  for (const [path, name] of [['groups', 'New group'], ['secrets', 'New secret'], ['alerts/channels', 'New channel'], ['alerts/rules', 'New rule']]) {
    await go((path.startsWith('alerts') ? '/' : '/settings/') + path, page);
    await button(name, page).first().click();
    await dialog.getByLabel('Name', { exact: true }).fill('there');
    if (path === 'secrets') await dialog.getByLabel('Value').fill('x');
    await button('Save', page).click();
    await dialog.locator('.field.wrong').getByText('This name is already taken').waitFor();
    assert.equal(sent.pop()!.headers()['if-none-match'], '*', name);
  }
  await go('/alerts/channels', page);
  await button('Edit', page).click();
  await button('Save', page).click();
  await dialog.getByText('Someone else changed it in the meantime').waitFor();
  const version = (await cluster.api('GET', '/api/v1/alerts/channels')).items[0].version;
  assert.equal(sent.pop()!.headers()['if-match'], `"${version}"`);
  await page.unrouteAll();
  await go('/settings/groups', page); // and so says the server
  await button('New group', page).click();
  await dialog.getByLabel('Name', { exact: true }).fill('there');
  await button('Save', page).click();
  await dialog.locator('.field.wrong').getByText('This name is already taken').waitFor();
  assert.equal((await cluster.api('GET', '/api/v1/groups/there')).slots, 2);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('an event of a rule that is unticked takes along what was said of it; a secret gets another value and keeps its app', limit, async () => {
  const { page, wrong, context } = await someone(), dialog = page.getByRole('dialog');
  await cluster.api('PUT', '/api/v1/alerts/channels/chat', { type: 'slack', url: 'https://chat.invalid/hook' });
  await cluster.api('PUT', '/api/v1/alerts/rules/many', { on: ['failed', 'failures', 'late_start'], failures: { count: 4, within: '2h' }, late_start: '5m', channels: ['chat'] });
  await go('/alerts/rules', page);
  await button('Edit', page).click();
  await dialog.getByLabel('Repeated failures').uncheck();
  await dialog.getByLabel('Started late').uncheck();
  await button('Save', page).click();
  await dialog.waitFor({ state: 'detached' });
  const { on, failures, late_start } = await cluster.api('GET', '/api/v1/alerts/rules/many');
  assert.deepEqual([on, failures, late_start], [['failed'], undefined, undefined]);
  await cluster.api('PUT', '/api/v1/secrets/DB_PASSWORD', { value: 'the first', app: 'shop' });
  const secret = async () => (await cluster.api('GET', '/api/v1/secrets')).items[0], before = await secret();
  await go('/settings/secrets', page);
  await button('Change the value of DB_PASSWORD', page).click();
  await dialog.getByLabel('Value').fill('the second');
  await button('Save', page).click();
  await dialog.waitFor({ state: 'detached' });
  const is = await secret();
  assert.equal(is.app, 'shop');
  assert.notEqual(is.updated, before.updated);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("the clock of the cluster is MySQL's, whatever a proxy's Date says", limit, async () => {
  const { page, wrong, context } = await someone();
  await page.route('**/api/v1/**', async (route) => {
    if (route.request().url().includes('/events')) return route.continue();
    const answer = await route.fetch();
    await route.fulfill({ response: answer, headers: { ...answer.headers(), date: new Date(Date.now() + 3600_000).toUTCString() } });
  });
  const soon = await cluster.job({ name: 'soon', at: iso(Date.now() + 600_000), command: 'true' });
  await go(`/jobs/${soon.id}`, page);
  await page.locator('.head').getByText(/in (9|10) m/).waitFor();
  await wait(1500);
  assert.equal(await page.getByText("This browser's clock is off", { exact: false }).count(), 0);
  assert.deepEqual(wrong, []);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await context.close();
});

test('of more jobs than are listed, the server looks for those of a name', limit, async () => {
  const { page, wrong, context } = await someone(), asked: string[] = [];
  await page.route(/\/api\/v1\/jobs\?/, async (route) => {
    const q = new URL(route.request().url()).searchParams, from = Number(q.get('cursor') ?? 0);
    const job = (n: number, name = `job ${n}`) => ({ id: String(n + 1), app: 'default', name, description: '', owner: '', labels: {}, every: '1h', command: 'true', overlap: 'skip', misfire: {}, on_lost: 'fail', paused: false, status: 'active', version: 1, created: iso(0), updated: iso(0) });
    if (!q.get('name')) return route.fulfill({ json: { items: Array.from({ length: 200 }, (_, i) => job(from + i)), next: String(from + 200) } });
    asked.push(q.get('name')!);
    await route.fulfill({ json: { items: q.get('name') === 'needle' ? [job(99_999, 'the needle')] : [] } });
  });
  await go('/jobs', page);
  await page.getByText('Only the first 20,000 jobs are shown', { exact: false }).waitFor();
  await page.getByLabel('Search jobs').fill('the needle');
  await page.getByRole('link', { name: 'the needle', exact: true }).waitFor();
  await page.getByText('only names were searched', { exact: false }).waitFor();
  await page.getByLabel('Search jobs').fill('nothing like it');
  await page.getByText('No matching jobs').waitFor();
  assert.deepEqual([...new Set(asked)], ['needle', 'nothing']);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('the time line has what began long before, and what went wrong where there is no room for all', limit, async () => {
  const { page, wrong, context } = await someone(), now = Date.now();
  let many = false;
  await page.route('**/api/v1/runs?*', (route) => {
    const q = new URL(route.request().url()).searchParams, before = Date.parse(q.get('to') ?? '') < now - 600_000;
    const items = q.get('outcome') || q.get('state') === 'running' ? [] : before ? [run('early', { job: 'backup', due: iso(now - 2 * 3600_000), started: iso(now - 2 * 3600_000), ended: iso(now - 60_000) })]
      : many ? Array.from({ length: 70 }, (_, i) => run(`m${i}`, { job: `job ${100 + i}`, due: iso(now - 60_000), started: iso(now - 60_000), ended: iso(now - 50_000), outcome: i === 69 ? 'failed' : 'succeeded' })) : [];
    return route.fulfill({ json: { items } });
  });
  await go('/timeline', page);
  const mark = page.locator('.lanes canvas');
  await mark.waitFor();
  const tip = async (y: number) => { const box = (await mark.boundingBox())!; await page.mouse.move(box.x + box.width - 8 - (55_000 / 900_000) * (box.width - 158) - 20, box.y + y); return page.locator('.tip').innerText().catch(() => ''); };
  await until('the one that began early', async () => /backup/.test(await tip(13)));
  many = true;
  await go('/timeline', page);
  await page.getByText('and 11 more', { exact: false }).waitFor();
  const box = (await mark.boundingBox())!;
  assert.ok(box.height > 60 * 26 && box.height < 61 * 26 + 24, `${box.height} pixels for sixty lanes`);
  await mark.scrollIntoViewIfNeeded();
  await page.mouse.wheel(0, 5000);
  await until('the last lane is the one that failed', async () => { const b = (await mark.boundingBox())!; await page.mouse.move(b.x + b.width - 8 - (56_000 / 900_000) * (b.width - 158), b.y + b.height - 24 - 13); return /failed/.test(await page.locator('.tip').innerText({ timeout: 1000 }).catch(() => '')); });
  assert.deepEqual(wrong, []);
  await context.close();
});

test('who signs in comes back to where it was, and other tabs go on by themselves', limit, async () => {
  const { page, wrong, context } = await visitor(browser);
  await page.route('**/api/v1/login', (route) => (route.request().method() === 'GET' ? route.fulfill({ json: { token: true, oidc: cluster.urls[0] } }) : route.continue()));
  await page.route('**/api/v1/login/oidc', (route) => route.fulfill({ json: { target: cluster.urls[0] + '/provider', flow: 'S.N.V' } }));
  await page.route('**/provider', (route) => // one that lets in everybody
    route.fulfill({ contentType: 'text/html', body: '<script>location.replace("/api/v1/login/oidc/callback?state=S&code=C&iss=x")</script>' }));
  const ends: unknown[] = [];
  await page.route('**/api/v1/login/oidc/callback', async (route) => {
    ends.push(route.request().postDataJSON());
    await route.fulfill({ response: await context.request.post(cluster.urls[0] + '/api/v1/login', { data: { token: cluster.token } }) });
  });
  await page.goto(cluster.urls[0] + '/runs?outcome=failed');
  await page.getByRole('button', { name: 'Sign in with the identity provider' }).click();
  await page.waitForURL(/\/runs\?outcome=failed$/);
  await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor();
  assert.deepEqual(ends, [{ flow: 'S.N.V', state: 'S', code: 'C' }]);
  assert.equal(await page.evaluate(() => sessionStorage.getItem('sign-in-flow')), null);

  const other = await context.newPage(), locked = (on: Page) => on.getByText('Nothing you typed is lost', { exact: false });
  await other.goto(cluster.urls[0] + '/cluster');
  await other.locator('main h1').first().waitFor();
  await context.clearCookies();
  await locked(page).waitFor();
  await locked(other).waitFor();
  await page.getByLabel('Token').fill(cluster.token);
  await button('Sign in', page).click();
  await locked(page).waitFor({ state: 'detached' });
  await locked(other).waitFor({ state: 'detached' });
  assert.deepEqual(wrong, []);
  await context.close();
});

test('to resume the cluster and to cancel a backfill is asked first', limit, async () => {
  const { page, wrong, context } = await someone(), dialog = page.getByRole('dialog');
  await cluster.api('POST', '/api/v1/cluster/pause', { reason: 'disks' });
  await go('/settings/pauses', page);
  await button('Resume', page).click();
  await dialog.getByText('Resume the whole cluster?').waitFor();
  assert.equal((await cluster.api('GET', '/api/v1/pauses')).items.length, 1, 'nothing is done before it is confirmed');
  await button('Resume cluster', page).click();
  await dialog.waitFor({ state: 'detached' });
  assert.equal((await cluster.api('GET', '/api/v1/pauses')).items.length, 0);

  const j = await cluster.job({ name: 'filled', schedule: '* * * * *', command: 'sleep 60' });
  const b = await cluster.api('POST', `/api/v1/jobs/${j.id}/backfill`, { from: iso(Date.now() - 3600_000), to: iso(Date.now() - 60_000) });
  await go(`/jobs/${j.id}/backfills`, page);
  await button('Cancel', page).click();
  await dialog.getByText('Cancel this backfill of filled?').waitFor();
  assert.equal((await cluster.api('GET', `/api/v1/backfills/${b.id}`)).state, 'running');
  await button('Cancel backfill', page).click();
  await until('it is cancelled', async () => (await cluster.api('GET', `/api/v1/backfills/${b.id}`)).state === 'cancelled');
  assert.deepEqual(wrong, []);
  await cluster.api('DELETE', `/api/v1/jobs/${j.id}`, undefined, { 'If-Match': '*' });
  await context.close();
});

test('the last look before saving is at the text at hand, and says if the server could not look', limit, async () => {
  const { page, wrong, context } = await someone(), dialog = page.getByRole('dialog');
  const j = await cluster.job({ name: 'looked at', schedule: '0 5 * * *', command: 'true' });
  await go(`/jobs/${j.id}/edit`, page);
  await page.getByText(/^at 05:00 every day/).waitFor();
  await page.route('**/api/v1/preview', async (route) => { await wait(2000); await route.continue().catch(() => undefined); });
  await page.locator('#f-schedule').fill('0 7 * * *');
  await button('Review changes', page).click();
  await dialog.waitFor();
  assert.match(await dialog.innerText(), /07:00/);
  assert.doesNotMatch(await dialog.innerText(), /at 05:00/);
  await dialog.getByRole('button', { name: 'Back' }).click();
  await page.locator('#f-schedule').fill('61 7 * * *');
  await button('Review changes', page).click();
  await page.locator('.field.wrong').getByText(/minute/).waitFor();
  assert.equal(await dialog.count(), 0, 'what is wrong is not offered for saving');
  await page.unroute('**/api/v1/preview');
  await page.route('**/api/v1/preview', (route) => route.fulfill({ status: 503, contentType: 'application/problem+json', json: { title: 'Not now', detail: 'Try again.' } }));
  await page.locator('#f-schedule').fill('0 9 * * *');
  await button('Review changes', page).click();
  await dialog.getByText('The server could not check it').waitFor();
  assert.deepEqual(wrong, []);
  page.on('dialog', (d) => void d.accept().catch(() => undefined));
  await context.close();
});

test('older lines stay without a hole, or the list begins anew; what was loaded of the upcoming is loaded again', limit, async () => {
  const { page, wrong, context } = await someone();
  let top = 1000;
  await page.route('**/api/v1/audit?*', (route) => {
    const from = Number(new URL(route.request().url()).searchParams.get('cursor') ?? top);
    return route.fulfill({ json: { items: Array.from({ length: 50 }, (_, i) => ({ id: String(from - i), at: iso(Date.now()), who: `who ${from - i}`, action: 'run', kind: 'job' })), next: String(from - 50) } });
  });
  await go('/audit', page);
  const rows = page.locator('tbody tr'), first = () => rows.first().innerText();
  await button('Show older', page).click();
  await until('two pages', async () => (await rows.count()) === 100);
  const news = () => cluster.api('POST', '/api/v1/cluster/pause', {}).then(() => cluster.api('POST', '/api/v1/cluster/resume', {}));
  top = 1010;
  await news();
  await until('ten more', async () => (await rows.count()) === 110 && /who 1010/.test(await first()));
  top = 1200; // more than a page came
  await news();
  await until('it has begun anew', async () => (await rows.count()) === 50 && /who 1200/.test(await first()));

  let reads = 0;
  await page.route('**/api/v1/upcoming?*', (route) => {
    const q = new URL(route.request().url()).searchParams, from = Number(q.get('cursor') ?? 0);
    if (!from) reads++;
    return route.fulfill({ json: { items: Array.from({ length: 20 }, (_, i) => ({ job_id: String(from + i), job: `job ${from + i}`, app: 'shop', due: iso(Date.now() + 600_000 + (from + i) * 1000) })), next: String(from + 20) } });
  });
  await go('/upcoming', page);
  const dues = page.locator('.duetimes tr');
  await until('a page', async () => (await dues.count()) === 20);
  await button('Show more', page).click();
  await until('two pages', async () => (await dues.count()) === 40);
  const before = reads;
  await news();
  await until('it was read again', () => reads > before);
  await wait(700);
  assert.equal(await dues.count(), 40);
  const asked = page.waitForRequest((r) => /\/upcoming\?.*app=shop/.test(r.url()));
  await page.getByLabel('App', { exact: true }).fill('shop');
  await asked;
  await page.waitForURL(/app=shop/);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('in Chinese, reasons that are known stand above what the server wrote; what a job says of itself stays', limit, async () => {
  const { page, wrong, context } = await someone({ zh: true });
  const slow = await ran('slow', 'sleep 30', { timeout: '1s' });
  await go(`/runs/${slow.id}`, page);
  await page.locator('.notice b').getByText('运行超过 1 秒').waitFor();
  await page.locator('.notice .original').getByText('the command ran longer than its timeout of 1s').waitFor();
  await go(`/jobs/${slow.job_id}/why?at=${encodeURIComponent(iso(Date.parse(slow.due) + 3600_000))}`, page);
  await page.locator('.notice b').getByText('按定义，这不是计划时间。').waitFor();
  await page.locator('.notice').getByText('It is not a due time of this job.').waitFor();
  const own = 'timeout waiting for lock invoice-7', explanation = { at: slow.due, due: true, cause: 'failed', answer: own };
  await page.route(`**/api/v1/runs/${slow.id}`, async (route) => { const r = await (await route.fetch()).json(); await route.fulfill({ json: { ...r, outcome: 'failed', reason_code: undefined, reason: own } }); });
  await page.route('**/explain?*', (route) => route.fulfill({ json: explanation }));
  await go(`/runs/${slow.id}`, page);
  await page.locator('.notice b').getByText(own, { exact: true }).waitFor();
  assert.deepEqual(wrong, []);
  await page.unrouteAll({ behavior: 'ignoreErrors' }); // the page may just be asking again
  await context.close();
});

test('what was killed by something else is told to have lacked memory, perhaps; what somebody killed is not', limit, async () => {
  const { page, wrong, context } = await someone(), advice = page.getByText('The process was killed from outside, perhaps because memory ran out.');
  const r = await ran('hungry', 'kill -9 $$');
  await go(`/runs/${r.id}`, page);
  await advice.waitFor();
  await page.route(`**/api/v1/runs/${r.id}`, async (route) => { const is = await (await route.fetch()).json(); await route.fulfill({ json: { ...is, outcome: 'killed', reason_code: 'killed_by_user', reason: 'killed by a user' } }); });
  await go(`/runs/${r.id}`, page);
  await page.getByText('killed by a user').waitFor();
  assert.equal(await advice.count(), 0);
  assert.deepEqual(wrong, []);
  await page.unrouteAll({ behavior: 'ignoreErrors' }); // the page may just be asking again
  await context.close();
});

test("due times of a job are shown in the job's zone, and the zone beside them", limit, async () => {
  const { page, wrong, context } = await someone();
  const j = await cluster.job({ name: 'far', ...yearly, timezone: 'Asia/Tokyo' });
  await page.route('**/api/v1/runs?*', (route) => route.fulfill({ json: { items: [run('1', { job_id: j.id, due: '2026-03-01T20:30:00Z', started: '2026-03-01T20:30:00Z', ended: '2026-03-01T20:31:00Z' })] } }));
  await go(`/jobs/${j.id}`, page);
  const cell = page.locator('table.runs tbody td').first();
  await until('it is the time of Tokyo', async () => /03-02 05:30/.test(await cell.innerText()));
  await page.locator('table.runs th').first().getByText('Asia/Tokyo').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('the way back leads to the same place: the list, how far it was scrolled, what was picked; and a draft keeps its address', limit, async () => {
  const { page, wrong, context } = await someone();
  await cluster.api('POST', '/api/v1/apply', { jobs: Array.from({ length: 120 }, (_, i) => ({ app: 'rows', name: `row ${100 + i}`, ...yearly })) });
  await go('/jobs?app=rows&sort=name', page);
  const row = page.getByRole('link', { name: 'row 180', exact: true });
  await page.getByRole('link', { name: 'row 105', exact: true }).waitFor();
  await page.getByLabel('Select row 105').check();
  await page.evaluate(() => scrollTo(0, 4000));
  await row.click();
  await page.getByRole('heading', { name: 'row 180', level: 1 }).waitFor();
  assert.equal(await page.evaluate(() => scrollY), 0);
  let reads = 0;
  await page.route('**/api/v1/jobs?*', async (route) => { reads++; await wait(1500); await route.continue().catch(() => undefined); });
  await page.goBack();
  await row.waitFor({ timeout: 5000 });
  await until('it is scrolled as it was', async () => Math.abs((await page.evaluate(() => scrollY)) - 4000) < 60);
  await page.getByText('1 selected').waitFor();
  await until('it is read again', () => reads > 0);
  await page.unroute('**/api/v1/jobs?*');

  const j = await cluster.job({ name: 'copied', ...yearly });
  await go('/jobs', page);
  await page.getByRole('link', { name: 'New job' }).first().click();
  await page.evaluate((to) => { history.replaceState(null, '', to); dispatchEvent(new PopStateEvent('popstate')); }, `/jobs/new?from=${j.id}`);
  await until('it is filled in', async () => (await page.locator('#f-name').inputValue().catch(() => '')) === 'copied 2');
  await page.locator('#f-description').fill('typed');
  await until('the text follows, and it is kept', async () => page.evaluate((key) => /typed/.test(sessionStorage.getItem(key) ?? ''), `draft:copy-${j.id}`));
  page.once('dialog', (d) => void d.dismiss());
  await page.goBack();
  await wait(500);
  assert.match(page.url(), new RegExp(`/jobs/new\\?from=${j.id}$`), 'who stays is where it was');
  page.on('dialog', (d) => void d.accept().catch(() => undefined));
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a button keeps the focus while it works; what a dialog shows once stays, and can be copied without a clipboard', limit, async () => {
  const { page, wrong, context } = await someone(), dialog = page.getByRole('dialog');
  await page.addInitScript(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
  const j = await cluster.job({ name: 'pressed once', ...yearly });
  let n = 0;
  await page.route(`**/api/v1/jobs/${j.id}/run`, async (route) => { n++; await wait(1500); await route.fulfill({ status: 503, contentType: 'application/problem+json', json: { title: 'Not now', detail: 'Try again.' } }); });
  await go('/jobs?q=pressed', page);
  const press = button('Run pressed once now', page);
  await press.focus();
  await page.keyboard.press('Enter');
  await page.locator('[aria-label="Run pressed once now"][aria-busy="true"]').waitFor();
  await page.keyboard.press('Enter');
  await page.locator('.toast.bad').waitFor();
  assert.equal(n, 1);
  assert.equal(await press.evaluate((el) => el === document.activeElement), true);

  await go('/settings/tokens', page);
  await button('New token', page).click();
  await dialog.getByLabel('Name').fill('shown-once');
  await button('Create token', page).click();
  await dialog.getByText('Copy it now. It is shown only once.').waitFor();
  await page.mouse.click(5, 5);
  await wait(300);
  assert.equal(await dialog.isVisible(), true, 'a press beside it does not take it away');
  await button('Copy', page).click();
  const toast = dialog.locator('.toast');
  await toast.getByText('Copied').waitFor(); // in the dialog: below it nobody could read or press it
  await toast.getByRole('button', { name: 'Close' }).click();
  await toast.waitFor({ state: 'detached' });
  assert.deepEqual(wrong, []);
  await context.close();
});

test('runs of a time and of a job by its name; many that are picked are looked at before they are paused, and one is one', limit, async () => {
  const { page, wrong, context } = await someone(), dialog = page.getByRole('dialog');
  const r = await ran('sought', 'true');
  await go('/runs', page);
  await page.getByLabel('Job', { exact: true }).fill('sough');
  await page.locator('#jobs-named option[value="sought"]').waitFor({ state: 'attached' });
  await page.getByLabel('Job', { exact: true }).fill('sought');
  await page.waitForURL(new RegExp(`job_id=${r.job_id}`));
  await page.locator('.chip').getByText('sought').waitFor();
  await page.locator('table.runs tbody tr').first().waitFor();
  await button('Other range…', page).click();
  await page.getByLabel('Scheduled from').fill('2027-01-01T10:00');
  await page.getByLabel('Scheduled from').blur();
  await page.waitForURL(/from=2027-01-01T09%3A00%3A00Z/); // the browser is in Berlin
  await page.getByText('No matching runs').waitFor();

  await go('/jobs?q=sought', page);
  await page.getByLabel('Select sought').check();
  const bar = page.getByRole('region', { name: 'Selected jobs' });
  await bar.getByRole('button', { name: 'Run now' }).click();
  await dialog.getByText('Run 1 job now?').waitFor();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await bar.getByRole('button', { name: 'Pause' }).click();
  await dialog.getByText('1 will change').waitFor();
  await dialog.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.locator('.toast').getByText('Done for 1 job', { exact: true }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});
