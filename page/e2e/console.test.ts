import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { enter, launch, visitor, type Looks } from './browser';
import { Cluster, until, wait } from './cluster';

// The console as people use it: Debian's Chromium, on a cluster of three nodes. What is written by one test is read by
// later ones only where they say so.

let cluster: Cluster, browser: Browser, context: BrowserContext, page: Page, wrong: string[];

before(async () => {
  [cluster, browser] = await Promise.all([Cluster.start(3, ['--no-samples']), launch()]);
  ({ context, page, wrong } = await visitor(browser));
}, { timeout: 150_000 });
after(async () => { await browser?.close(); await cluster?.stop(); });

const limit = { timeout: 90_000 };
const button = (name: string | RegExp, on: Page = page) => on.getByRole('button', { name, exact: typeof name === 'string' });
const seen = (text: string | RegExp, on: Page = page) => on.getByText(text, { exact: typeof text === 'string' }).first().waitFor();
const go = async (path: string, on: Page = page, node = 0) => { await on.goto(cluster.urls[node] + path); await on.locator('main h1').first().waitFor(); };
const quiet = () => { assert.deepEqual(wrong, [], 'the browser complained'); };

async function signIn(on: Page, token = cluster.token) {
  await on.getByLabel('Token').or(on.getByLabel('令牌')).fill(token);
  await on.getByRole('button', { name: /^(Sign in|登录)$/ }).click();
}
async function someone(o: Looks = {}, token = cluster.token, node = 0) {
  const v = await visitor(browser, o);
  await enter(v.context, cluster.urls[node], token);
  return v;
}

test('sign in: a wrong token is told, the right one leads to an empty list with a next step', limit, async () => {
  await page.goto(cluster.urls[0] + '/');
  await signIn(page, 'gocrontab_wrong');
  await page.getByRole('alert').first().waitFor();
  await signIn(page);
  await seen('No jobs yet');
  await page.getByRole('link', { name: 'Create the first job' }).waitFor();
  quiet();
});

test('add a job from an example, with a preview while typing, and see it fire live', limit, async () => {
  await page.getByRole('link', { name: 'Create the first job' }).click();
  await button('A command every 10 seconds').click();
  await page.getByLabel('Interval', { exact: true }).fill('2x');
  await page.getByLabel('Interval', { exact: true }).blur();
  await seen(/duration/i); // at the field once it was left, before anything is saved
  await page.getByLabel('Interval', { exact: true }).fill('2s');
  await page.getByText(/^every 2 seconds/).waitFor();
  assert.equal((await cluster.api('GET', '/api/v1/jobs')).items.length, 0, 'nothing is saved before it is confirmed');
  await button('Review and create').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('heading', { name: 'heartbeat', level: 1, exact: true }).waitFor();
  const rows = page.locator('table.runs tbody tr');
  await until('it fires', async () => (await rows.count()) >= 1);
  const before = await rows.count();
  await until('and again, without a reload', async () => (await rows.count()) >= before + 2);
  await page.locator('table.runs').getByText('succeeded').first().waitFor();
  quiet();
});

test('follow the output of a run while it is written', limit, async () => {
  const j = await cluster.job({ name: 'talker', schedule: '0 0 1 1 *', command: 'for i in 1 2 3 4 5 6; do echo "step $i"; sleep 1; done' });
  await go(`/jobs/${j.id}`);
  await button('Run now').click();
  await page.waitForURL(/\/runs\//);
  const out = page.getByRole('log');
  await out.getByText('step 1').waitFor();
  assert.equal(await out.getByText('step 6').count(), 0, 'the beginning is shown before the end was written');
  await out.getByText('step 6').waitFor();
  await page.locator('.head').getByText('succeeded').waitFor();
  assert.equal(await out.locator('.l').count(), 6, 'each line stands there once');
  quiet();
});

test('make one fail, find out why, mend it, see it succeed', limit, async () => {
  const j = await cluster.job({ name: 'broken', schedule: '0 0 1 1 *', command: 'nosuchcommand --all' });
  await go(`/jobs/${j.id}`);
  await button('Run now').click();
  await page.waitForURL(/\/runs\//);
  await page.locator('.notice').getByText('127: the shell did not find the command', { exact: false }).waitFor();
  await page.getByRole('log').getByText('command not found').waitFor();
  await page.getByRole('link', { name: 'Edit job' }).click();
  await page.locator('#f-command').fill('echo mended');
  await button('Review changes').click();
  const dialog = page.getByRole('dialog');
  assert.match(await dialog.locator('.diff').innerText(), /nosuchcommand[\s\S]*echo mended/);
  await dialog.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('heading', { name: 'broken', level: 1, exact: true }).waitFor();
  await button('Run now').click();
  await page.waitForURL(/\/runs\//);
  await page.getByRole('log').getByText('mended').waitFor();
  await page.locator('.head').getByText('succeeded').waitFor();
  quiet();
});

test('pause with a reason, and resume', limit, async () => {
  const j = await cluster.job({ name: 'pausing', every: '1h', command: 'true' });
  await go(`/jobs/${j.id}`);
  await button('Pause').click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Reason').fill('moving <b>house</b>');
  await dialog.getByRole('button', { name: '4 h', exact: true }).click();
  await dialog.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.locator('.notice').getByText('moving <b>house</b>', { exact: false }).waitFor();
  const is = await cluster.api('GET', `/api/v1/jobs/${j.id}`);
  assert.equal(is.status, 'paused');
  assert.ok(Date.parse(is.pause.until) - Date.now() > 3 * 3600_000);
  await button('Resume').click();
  await until('it is resumed', async () => (await cluster.api('GET', `/api/v1/jobs/${j.id}`)).status === 'active');
  await button('Pause').waitFor();
  quiet();
});

test('kill a run', limit, async () => {
  const j = await cluster.job({ name: 'endless', schedule: '0 0 1 1 *', command: 'echo begun; sleep 300', grace: '1s' });
  await go(`/jobs/${j.id}`);
  await button('Run now').click();
  await page.waitForURL(/\/runs\//);
  await page.getByRole('log').getByText('begun').waitFor();
  await button('Kill').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Kill', exact: true }).click();
  await page.locator('.head').getByText('killed').waitFor();
  quiet();
});

test('backfill a range', limit, async () => {
  const j = await cluster.job({ name: 'daily', schedule: '0 * * * *', command: 'echo $GOCRONTAB_DUE' });
  await go(`/jobs/${j.id}`);
  await button('Backfill').first().click();
  const dialog = page.getByRole('dialog'), to = await dialog.getByLabel('To', { exact: true }).inputValue();
  await dialog.getByLabel('From').fill(new Date(Date.parse(to.slice(0, 16) + ':00Z') - 4 * 3600_000).toISOString().slice(0, 16));
  await dialog.getByText(/^[345] scheduled times will run/).waitFor();
  await dialog.getByRole('button', { name: 'Start backfill' }).click();
  await page.waitForURL(/\/backfills/);
  await seen('done');
  const { items } = await cluster.api('GET', `/api/v1/backfills?job_id=${j.id}`);
  assert.ok(items[0].outcomes.succeeded >= 3, JSON.stringify(items[0]));
  quiet();
});

test('edit with a version that is stale: nothing typed is lost, and both changes stand', limit, async () => {
  const j = await cluster.job({ name: 'shared', schedule: '0 5 * * *', command: 'echo one', description: 'as it was' });
  await go(`/jobs/${j.id}/edit`);
  await page.locator('#f-command').fill('echo mine');
  await cluster.api('PATCH', `/api/v1/jobs/${j.id}`, { description: 'theirs' });
  await seen('Someone else changed this job while you were editing');
  await button('Merge my changes').click();
  assert.equal(await page.locator('#f-command').inputValue(), 'echo mine');
  assert.equal(await page.locator('#f-description').inputValue(), 'theirs');
  await button('Review changes').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('heading', { name: 'shared', level: 1, exact: true }).waitFor();
  const is = await cluster.api('GET', `/api/v1/jobs/${j.id}`);
  assert.deepEqual([is.command, is.description], ['echo mine', 'theirs']);
  quiet();
});

test('a sign-in that ends in the middle of an edit: nothing typed is lost', limit, async () => {
  const j = await cluster.job({ name: 'long edit', schedule: '0 5 * * *', command: 'echo one' });
  await go(`/jobs/${j.id}/edit`);
  await page.locator('#f-command').fill('echo typed before');
  await context.clearCookies(); // the next question that the page asks is refused
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Nothing you typed is lost', { exact: false }).waitFor();
  await signIn(page);
  await dialog.waitFor({ state: 'detached' });
  await page.locator('#f-description').fill('typed after');
  assert.equal(await page.locator('#f-command').inputValue(), 'echo typed before');
  await button('Review changes').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('heading', { name: 'long edit', level: 1, exact: true }).waitFor();
  const is = await cluster.api('GET', `/api/v1/jobs/${j.id}`);
  assert.deepEqual([is.command, is.description], ['echo typed before', 'typed after']);
  quiet();
});

test('form and text are two sides of one thing, and comments survive', limit, async () => {
  await go('/jobs/new');
  const text = page.getByLabel('Source');
  await text.fill('# why it is there\nname: two sides\nschedule: 0 3 * * *\ncommand: "true" # for now\n');
  assert.equal(await page.locator('#f-name').inputValue(), 'two sides');
  await page.locator('#f-timeout').fill('5m');
  await until('the text follows', async () => /timeout: 5m/.test(await text.inputValue()));
  assert.match(await text.inputValue(), /# why it is there[\s\S]*# for now/);
  await text.fill('name: [two\n');
  await seen(/Cannot parse the text: line \d/);
  assert.equal(await page.locator('#f-name').isDisabled(), true);
  await text.fill('{"name": "two sides", "schedule": "61 3 * * *", "command": "true"}');
  await page.locator('.field.wrong').getByText(/minute/).first().waitFor();
  page.once('dialog', (d) => void d.accept());
  await page.evaluate(() => sessionStorage.clear());
  quiet();
});

test('what jobs print and are called stays text', limit, async () => {
  const name = "\"quotes\" <img src=x onerror=alert(1)> \u202egpj.exe";
  const j = await cluster.job({ name: 'x' , schedule: '0 0 1 1 *', description: name, command: `printf '\\033[1;31mred\\033[0m <script>document.title="run"</script> \\033]0;title\\007 \\342\\200\\256evil \\xff\\n'; head -c 200000 /dev/zero | tr '\\0' y; echo; echo last` });
  await go(`/jobs/${j.id}`);
  await button('Run now').click();
  await page.waitForURL(/\/runs\//);
  const out = page.getByRole('log');
  await page.locator('.head').getByText('succeeded').waitFor();
  const reach = (what: string, end: boolean) => until(what, async () => { await out.evaluate((el, end) => { el.scrollTop = end ? el.scrollHeight : 0; }, end); return (await out.locator(what).count()) > 0; }); // only what is in sight exists
  await reach('text="last"', true);
  await reach('.f-1.a-bold', false);
  assert.match((await out.locator('.f-1.a-bold').first().getAttribute('class')) ?? '', /f-1/);
  await out.getByText('<script>document.title="run"</script>', { exact: false }).waitFor();
  await out.getByText('U+202E').waitFor();
  assert.notEqual(await page.title(), 'run');
  assert.equal(await page.locator('main script, main img').count(), 0);
  await page.getByLabel('Search the output').fill('LAST');
  await button('Only lines with matches').click();
  await until('one line is left', async () => (await out.locator('.l').count()) === 1);
  quiet();
});

test('filters and searches stand in the address', limit, async () => {
  await cluster.job({ name: 'pausing', every: '1h', command: 'true' });
  await go('/jobs');
  await page.getByLabel('Search jobs').fill('nosuch OR not');
  await seen('No matching jobs');
  await page.getByLabel('Search jobs').fill('heart');
  await page.getByRole('link', { name: 'heartbeat', exact: true }).waitFor();
  assert.match(page.url(), /q=heart/);
  await page.reload();
  await page.getByRole('link', { name: 'heartbeat', exact: true }).waitFor();
  assert.equal(await page.locator('.rows .jobrow').count(), 1);
  await page.keyboard.press('Escape');
  await page.locator('h1').click();
  await page.keyboard.press('/');
  await page.getByRole('combobox', { name: 'Search' }).fill('pausing');
  await page.getByRole('option', { name: /^pausing/ }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'pausing', level: 1, exact: true }).waitFor();
  quiet();
});

test('a viewer sees everything and is offered nothing', limit, async () => {
  const { token } = await cluster.api('POST', '/api/v1/tokens', { name: 'looker', role: 'viewer' });
  const v = await someone({}, token);
  const { items } = await cluster.api('GET', '/api/v1/jobs?name=heartbeat');
  await go(`/jobs/${items[0].id}`, v.page);
  await v.page.locator('table.runs tbody tr').first().waitFor();
  for (const name of ['Run now', 'Pause', 'Delete']) assert.equal(await button(name, v.page).count(), 0, name);
  await v.page.goto(cluster.urls[0] + '/jobs/new');
  await seen('Changing jobs needs the admin role', v.page);
  assert.deepEqual(v.wrong, []);
  await v.context.close();
});

test('a newcomer, with the page alone: add a job, break it, find out why, mend it, see it succeed', limit, async () => {
  await go('/jobs');
  await page.getByRole('link', { name: 'New job' }).click();
  await page.locator('#f-name').fill('first steps');
  await page.locator('#f-schedule').fill('*/5 * * * *');
  await page.getByText(/^every 5 minutes/).waitFor();
  await page.locator('#f-command').fill('cat /nosuchfile');
  await button('Review and create').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('heading', { name: 'first steps', level: 1, exact: true }).waitFor();
  await button('Run now').click();
  await page.waitForURL(/\/runs\//);
  await page.locator('.head').getByText('failed').waitFor();
  await page.getByRole('log').getByText('No such file or directory', { exact: false }).waitFor();
  await page.locator('.notice').getByText('exit status 1', { exact: false }).waitFor();
  await page.getByRole('link', { name: 'Edit job' }).click();
  await page.locator('#f-command').fill('echo it works');
  await button('Review changes').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('heading', { name: 'first steps', level: 1, exact: true }).waitFor();
  await button('Run now').click();
  await page.waitForURL(/\/runs\//);
  await page.getByRole('log').getByText('it works').waitFor();
  await page.locator('.head').getByText('succeeded').waitFor();
  quiet();
});

test('what is upcoming: lists, the week, the heat map with its herds, and the feed of calendar programs', limit, async () => {
  for (let i = 0; i < 12; i++) await cluster.job({ app: 'herd', name: `nightly ${i}`, schedule: '0 3 * * *', command: 'true' });
  await cluster.job({ app: 'herd', name: 'often', schedule: '* * * * *', command: 'true' });
  await go('/upcoming?span=day&app=herd');
  await page.getByRole('link', { name: 'nightly 3', exact: true }).first().waitFor();
  await page.locator('.chip').getByText('often').waitFor(); // it is told apart
  await button('Next week').click();
  await until('seven days', async () => (await page.locator('.week > section').count()) === 7);
  await page.locator('.week').getByText('and 3 more').first().click();
  await page.locator('.duetimes').getByRole('link', { name: 'nightly 9', exact: true }).waitFor();
  await go('/timeline/week');
  const herd = page.getByRole('row').filter({ hasText: /03:00|04:00/ }).first(); // in Berlin
  await herd.getByRole('button', { name: 'Show jobs' }).click();
  await page.getByRole('link', { name: 'nightly 3', exact: true }).first().waitFor();
  await page.getByText(/^Free minutes: /).waitFor();

  await go('/upcoming?app=herd');
  await button('Subscribe').click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Create a token for it' }).click();
  const token = await dialog.getByLabel('Password').inputValue(), address = await dialog.getByLabel('Address').inputValue();
  const as = (password: string) => fetch(address, { headers: { Authorization: 'Basic ' + Buffer.from('calendar:' + password).toString('base64') } });
  const feed = await as(token);
  assert.equal(feed.status, 200);
  assert.match(await feed.text(), /SUMMARY:herd\/nightly 3\r\n/);
  assert.equal((await as(cluster.token)).status, 403, 'a token that may do more is not taken as a password');
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  quiet();
});

test('alerts: a channel that is tested, a rule, and a silence', limit, async () => {
  await go('/alerts/channels');
  await button('New channel').first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name', { exact: true }).fill('ops chat');
  await dialog.getByLabel('URL').fill('not an address');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.locator('.field.wrong').first().waitFor(); // at the field
  await dialog.getByLabel('URL').fill('https://chat.invalid/hook');
  await dialog.getByRole('button', { name: 'Test', exact: true }).click(); // before it is saved
  const refused = page.locator('.toast.bad').getByText('Test to "ops chat" failed');
  await refused.waitFor();
  assert.equal((await cluster.api('GET', '/api/v1/alerts/channels')).items.length, 0, 'a test saves nothing');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  await button('Test').click();
  await until('both tests are told', async () => (await refused.count()) === 2);
  await page.getByRole('row', { name: /ops chat/ }).getByText('failing', { exact: true }).waitFor({ timeout: 30_000 });
  await button('Rules').click();
  await button('New rule').first().click();
  await dialog.getByLabel('Name', { exact: true }).fill('nights');
  await dialog.getByLabel('Repeated failures').check();
  await dialog.getByLabel('ops chat').check();
  await dialog.getByLabel('Apps').fill('herd');
  const sample = page.waitForResponse('**/api/v1/alerts/test-rule');
  await dialog.getByRole('button', { name: 'Test', exact: true }).click();
  const tested = (await (await sample).json()).channels;
  assert.deepEqual(tested.map((c: { channel: string; sent: boolean }) => [c.channel, c.sent]), [['ops chat', false]]);
  assert.equal((await cluster.api('GET', '/api/v1/alerts/rules')).items.length, 0, 'a test saves nothing');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  const { items } = await cluster.api('GET', '/api/v1/alerts/rules');
  assert.deepEqual([items[0].name, items[0].apps, items[0].channels, items[0].failures.count], ['nights', ['herd'], ['ops chat'], 3]);
  await button('Silences').click();
  await button('New silence').first().click();
  await dialog.getByLabel('Rule').fill('nights');
  await dialog.getByLabel('Reason').fill('moving');
  await dialog.getByRole('button', { name: 'Silence', exact: true }).click();
  await page.getByRole('cell', { name: /moving/ }).waitFor();
  await button('End silence').click();
  await until('it is over', async () => (await cluster.api('GET', '/api/v1/alerts/silences')).items.length === 0);
  const counted = '**/api/v1/alerts/summary'; // a cluster on which too much went wrong once
  await page.route(counted, (route) => route.fulfill({ json: { firing: 0, deliveries: {}, lost: 3, template_failures: 1 } }));
  await go('/alerts');
  await page.getByText('3 events were dropped because there were too many. A template failed once').waitFor();
  await page.unroute(counted);
  quiet();
});

test('in Chinese: the words of schedules, and what the server refuses', limit, async () => {
  const v = await someone({ zh: true });
  await v.page.goto(cluster.urls[0] + '/jobs/new');
  await v.page.locator('#f-name').fill('x');
  await v.page.locator('#f-schedule').fill('30 2 * * mon-fri');
  await v.page.getByText(/^每个工作日 02:30/).waitFor();
  await v.page.locator('#f-schedule').fill('61 * * * *');
  await v.page.locator('#f-schedule').blur();
  await v.page.locator('.field.wrong').getByText('不在 0 与 59 之间', { exact: false }).waitFor();
  const { items } = await cluster.api('GET', '/api/v1/jobs?name=heartbeat');
  if (items[0]) {
    await go(`/jobs/${items[0].id}/why?at=2001-01-01T00:00:00Z`, v.page);
    await v.page.locator('.notice b').getByText(/[\u4e00-\u9fff]/).waitFor();
  }
  assert.deepEqual(v.wrong, []);
  await v.context.close();
});

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

async function screens(): Promise<string[]> {
  const { items } = await cluster.api('GET', '/api/v1/jobs?name=heartbeat'), id = items[0].id;
  const runs = await cluster.api('GET', '/api/v1/runs?state=ended&limit=1');
  return ['/', '/jobs', `/jobs/${id}`, `/jobs/${id}/definition`, `/jobs/${id}/versions`, `/jobs/${id}/why?at=${encodeURIComponent(runs.items[0].due)}`, `/jobs/${id}/edit`, '/jobs/new', '/runs', `/runs/${runs.items[0].id}`, '/upcoming', '/upcoming?span=week', '/timeline', '/timeline/slots', '/timeline/week', '/cluster',
    '/audit', '/alerts', '/alerts/rules', '/alerts/channels', '/alerts/silences', '/settings/pauses', '/settings/calendars', '/settings/groups', '/settings/secrets', '/settings/tokens', '/settings', '/settings/retention'];
}

for (const [name, looks] of Object.entries<Looks>({ light: {}, dark: { dark: true }, narrow: { narrow: true }, 'Chinese, dark, narrow': { zh: true, dark: true, narrow: true } })) {
  test(`every screen: ${name}`, { timeout: 240_000 }, async () => {
    const v = await someone(looks), found: string[] = [];
    for (const path of await screens()) {
      await go(path, v.page);
      await v.page.locator('.loading').first().waitFor({ state: 'detached' }).catch(() => undefined);
      await wait(400);
      const over = await v.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (over > 0) found.push(`${path}: ${over} pixels wider than the window`);
      if (looks.zh) {
        const h1 = await v.page.locator('h1').first().innerText();
        if (/^(Overview|Jobs|Runs|Upcoming|Timeline|Cluster|Alerts|Audit|Settings|New job)$/.test(h1)) found.push(`${path}: its title is English: ${h1}`);
      }
      if (looks.narrow && !['/', '/jobs', '/jobs/new', '/runs', '/timeline/slots', '/cluster', '/audit'].includes(path)) continue; // what is wide shows the same
      await v.page.evaluate(axe);
      const result = await v.page.evaluate(() => (window as any).axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }));
      for (const x of result.violations) found.push(`${path}: ${x.id}: ${x.nodes.slice(0, 2).map((n: { html: string; any: { message: string }[] }) => n.html.slice(0, 120) + ' ' + (n.any[0]?.message ?? '').slice(0, 120)).join(' | ')}`);
    }
    assert.deepEqual([...v.wrong, ...found], []);
    await v.context.close();
  });
}

test('the node that is looked at dies: it is said, another one is offered, and the page goes on by itself', { timeout: 120_000 }, async () => {
  const v = await someone({}, cluster.token, 1);
  await go('/jobs', v.page, 1);
  await v.page.getByRole('link', { name: 'heartbeat', exact: true }).waitFor();
  await wait(1500); // it has asked who the others are
  process.kill(await cluster.pid(1), 'SIGKILL');
  await v.page.getByText('is not responding, so this page may be out of date', { exact: false }).waitFor();
  const other = v.page.getByRole('link', { name: /^Continue on node-/ }).first();
  assert.notEqual(new URL((await other.getAttribute('href'))!).host, new URL(cluster.urls[1]).host);
  await v.page.getByRole('link', { name: 'heartbeat', exact: true }).waitFor(); // what was there stays
  await until('the node is back and the page has noticed', async () => (await v.page.getByText('is not responding', { exact: false }).count()) === 0, 60_000);
  await other.waitFor({ state: 'detached' });
  await v.context.close();
});
