import assert from 'node:assert/strict';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { launch, visitor } from './browser';
import { Cluster, until } from './cluster';

// Sign-ins, and what a server on another port of the same host can do with them.

let cluster: Cluster, browser: Browser, foreign: Server;
let heard: IncomingHttpHeaders[] = []; // what the foreign server was sent
let plants: string[] = []; // cookies that it sets

before(async () => {
  foreign = createServer((request, response) => {
    heard.push(request.headers);
    response.writeHead(200, { 'Content-Type': 'text/html', ...(plants.length > 0 && { 'Set-Cookie': plants }) });
    response.end('<title>foreign</title>');
  });
  await new Promise<void>((ok) => foreign.listen(0, '127.0.0.1', ok));
  [cluster, browser] = await Promise.all([Cluster.start(2, ['--no-samples']), launch()]);
}, { timeout: 150_000 });
after(async () => { await browser?.close(); foreign?.close(); await cluster?.stop(); });

const limit = { timeout: 90_000 };
const home = () => cluster.urls[0];
const foreignURL = () => `http://127.0.0.1:${(foreign.address() as AddressInfo).port}/`;
const heading = (page: Page) => page.getByRole('heading', { name: 'Jobs', level: 1 }).waitFor();
const asked = (page: Page) => page.getByLabel('Token').waitFor();
const keyOf = (page: Page) => page.evaluate(() => localStorage.getItem('login-key'));
async function signIn(page: Page, url = home()) {
  await page.goto(url + '/jobs');
  await page.getByLabel('Token').fill(cluster.token);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await heading(page);
}

test('sign in, load again, a second tab, live, sign out in all tabs', limit, async () => {
  const { page, context, wrong } = await visitor(browser);
  await signIn(page);
  await page.reload();
  await heading(page);

  const second = await context.newPage();
  await second.goto(home() + '/jobs');
  await heading(second);
  await second.locator('.foot .pace.live').waitFor(); // the stream of events is there
  await page.bringToFront();
  await page.locator('.foot .pace.live').waitFor();
  await cluster.job({ name: 'comes while one looks', every: '1h', command: 'true' });
  await page.getByText('comes while one looks').first().waitFor();

  const old = await keyOf(page), cookies = await context.cookies();
  assert.ok(old);
  assert.ok(cookies.every((c) => c.httpOnly));
  await page.getByRole('button', { name: 'Sign out' }).click();
  await asked(page);
  await asked(second);
  assert.equal(await keyOf(page), null);
  assert.deepEqual(await context.cookies(), []);
  const again = await fetch(home() + '/api/v1/me', { headers: { Cookie: cookies.map((c) => `${c.name}=${c.value}`).join('; '), 'X-Gocrontab-Login': old! } });
  assert.equal(again.status, 401);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('two nodes of one host: signed in at both, neither signs the other out', limit, async () => {
  const { page, context, wrong } = await visitor(browser);
  await signIn(page);
  const other = await context.newPage();
  await signIn(other, cluster.urls[1]);
  await page.reload();
  await heading(page);
  await other.reload();
  await heading(other);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a server on another port of the host is sent the cookie, and it is worth nothing there', limit, async () => {
  const { page, context, wrong } = await visitor(browser);
  await signIn(page);
  heard = [];
  const elsewhere = await context.newPage();
  await elsewhere.goto(foreignURL());
  const cookie = heard[0].cookie ?? '';
  assert.match(cookie, /^gocrontab-[0-9a-f]{8}=gclogin_/, 'the browser sends it: that is why it must not be enough');
  assert.ok(heard.every((h) => h['x-gocrontab-login'] === undefined));
  assert.equal(await elsewhere.evaluate(() => localStorage.getItem('login-key')), null);
  for (const path of ['/api/v1/me', '/api/v1/jobs', '/api/v1/tokens', '/api/v1/events', '/api/v1/upcoming.ics']) {
    assert.equal((await fetch(home() + path, { headers: { Cookie: cookie } })).status, 401, path);
  }

  // Nor can its page have the browser ask: without the key the node does not know the browser, and with a made-up one the
  // browser is told by nobody that it may send the header.
  const tries = await elsewhere.evaluate(async (url) => {
    const ask = (o: RequestInit) => fetch(url + '/api/v1/me', { credentials: 'include', ...o }).then((r) => r.status, () => 0);
    await ask({ mode: 'no-cors' });
    return [await ask({}), await ask({ headers: { 'X-Gocrontab-Login': 'x' } })];
  }, home());
  assert.deepEqual(tries, [0, 0]);
  await page.reload();
  await heading(page); // and all that has signed nobody out
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a server on another port plants the cookie of its own sign-in: the page signs nobody in with it', limit, async () => {
  const answer = await fetch(home() + '/api/v1/login', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ token: cluster.token }) });
  const own = answer.headers.get('set-cookie')!.split(';')[0].split('=')[1];

  const { page, context, wrong } = await visitor(browser);
  await signIn(page);
  const mine = (await context.cookies()).find((c) => c.name.startsWith('gocrontab-'))!;
  plants = [`${mine.name}=${own}; Path=/`, `gocrontab=${own}; Path=/`];
  const elsewhere = await context.newPage();
  await elsewhere.goto(foreignURL());
  plants = [];
  const now = (await context.cookies()).find((c) => c.name === mine.name); // the page may have asked by now, and lost it
  assert.ok(!now || now.value === own, 'the server can overwrite the cookie');

  await page.reload();
  await asked(page); // the pair does not fit: nobody is signed in, and what is left of it is thrown away
  await until('the key is forgotten', async () => (await keyOf(page)) === null);
  assert.equal((await context.cookies()).find((c) => c.name === mine.name), undefined);

  // Nor is anybody signed in who is sent back as if by the identity provider.
  await page.goto(home() + '/api/v1/login/oidc/callback?state=x&code=y');
  await asked(page);
  assert.equal(new URL(page.url()).pathname + new URL(page.url()).search, '/');
  await signIn(page);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('who is signed in is listed, and one browser signs another one out; its open page says so', limit, async () => {
  const made = await cluster.api('POST', '/api/v1/tokens', { name: 'ann', role: 'viewer' });
  const [admin, ann] = [await visitor(browser), await visitor(browser)];
  await signIn(admin.page);
  await ann.page.goto(home() + '/settings/logins');
  await ann.page.getByLabel('Token').fill(made.token);
  await ann.page.getByRole('button', { name: 'Sign in', exact: true }).click();
  const hers = ann.page.locator('main tbody tr');
  await hers.first().waitFor();
  assert.equal(await hers.count(), 1, 'she sees her own');
  await hers.getByText('this browser').waitFor();

  await admin.page.goto(home() + '/settings/logins');
  await admin.page.getByRole('heading', { name: 'Signed-in browsers' }).waitFor();
  const row = admin.page.locator('main tbody tr', { hasText: 'ann' });
  await row.getByRole('button', { name: 'Sign out' }).click();
  await admin.page.getByRole('dialog').getByRole('button', { name: 'Sign out', exact: true }).click();
  await row.waitFor({ state: 'detached' });
  await ann.page.getByText('You were signed out').waitFor();
  assert.deepEqual([...admin.wrong, ...ann.wrong], []);
  await admin.context.close();
  await ann.context.close();
});
