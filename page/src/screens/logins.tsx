import { call, may, query } from '../api';
import { t } from '../i18n';
import { usePages } from '../live';
import { Ago, ask, Badge, Button, Card, Empty, Loading, ProblemBox, When } from '../parts/basic';
import { here, setQuery } from '../router';
import type { LoginRow as Login } from '../types';

/** Browsers that are signed in: all of them for an admin of the cluster, one's own for everybody else. */
export function Logins() {
  const who = here.value.search.get('who') ?? '';
  const list = usePages<Login>(`/api/v1/logins${query({ who, limit: 100 })}`, (l) => l.id, { every: 10_000, always: true });
  const end = (path: string, title: string) => ask({
    title, button: t('Sign out'), danger: true,
    text: <p>{t('The browser loses access on every node. The user can sign in again with a valid token or through the identity provider.')}</p>,
    work: async () => { await call(path, { method: 'DELETE' }); await list.reload(); },
  });

  return (
    <>
      {who && (
        <div class="filters">
          <button class="chip" aria-pressed="true" onClick={() => setQuery({ who: undefined })}><bdi>{who}</bdi> ×</button>
          {list.items.length > 1 && <Button work={() => end(`/api/v1/logins${query({ who })}`, t('Sign out all browsers of {who}?', { who }))}>{t('Sign out all')}</Button>}
        </div>
      )}
      <Card title={may('admin') ? t('Signed-in browsers') : t('Your signed-in browsers')}>
        {list.problem && <ProblemBox problem={list.problem} again={list.reload} />}
        {list.loading ? <Loading /> : list.items.length === 0 ? !list.problem && <Empty icon="key" title={t('No signed-in browsers')} /> : (
          <div class="scroll"><table class="limits logins">
            <thead><tr><th>{t('User')}</th><th>{t('Role')}</th><th class="thin-hide">{t('Since')}</th><th class="thin-hide">{t('Until')}</th><th>{t('Last used')}</th><th class="thin-hide">{t('Last verified')}</th><th><span class="unseen">{t('Sign out')}</span></th></tr></thead>
            <tbody>{list.items.map((l) => <Row key={l.id} login={l} end={end} />)}</tbody>
          </table></div>
        )}
        {list.more && <div class="more-row"><Button work={list.more}>{t('Show more')}</Button></div>}
      </Card>
    </>
  );
}

function Row({ login: l, end }: { login: Login; end: (path: string, title: string) => void }) {
  return (
    <tr>
      <td><button class="plainlink" onClick={() => setQuery({ who: l.who })}><bdi>{l.who}</bdi></button>
        <div class="small faint">{l.kind === 'oidc' ? t('via identity provider') : t('via token')}</div></td>
      <td data-label={t('Role')}>{l.grants.map((g, i) => <div key={i}>{t(g.role)}{g.apps && <div class="small faint">{g.apps.join(', ')}</div>}</div>)}</td>
      <td class="thin-hide"><Ago at={l.since} /> <span class="faint small">{l.from}</span></td>
      <td class="thin-hide"><When at={l.until} /></td>
      <td data-label={t('Last used')}>{l.last_used ? <><Ago at={l.last_used} /> <span class="faint small thin-hide">{l.last_used_from}</span></> : <span class="faint">{t('never')}</span>}</td>
      <td class="thin-hide">{l.kind !== 'oidc' ? '' : l.check_at ? <Ago at={l.checked ?? l.since} /> : <span class="faint">{t('only at sign-in')}</span>}</td>
      <td class="num">{l.current ? <Badge tone="good">{t('this browser')}</Badge>
        : <Button look="quiet" work={() => end(`/api/v1/logins/${l.id}`, t('Sign out {who}?', { who: l.who }))}>{t('Sign out')}</Button>}</td>
    </tr>
  );
}
