package secret

import (
	"testing"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"
)

// TestSecretsRunAgain refuses each statement of each change of secrets once, as after a deadlock.
func TestSecretsRunAgain(t *testing.T) {
	t.Parallel()
	old, latest := NewKey(), NewKey()
	alice := job.WithActor(t.Context(), job.Actor{Who: "alice", Origin: "here"})
	dsn := testdb.DSN(t)
	direct := openAt(t, dsn)
	schema := faultproxy.NewSchema(t, direct.Raw())

	proxy := faultproxy.Before(t, dsn)
	db, err := sql.Open(proxy.DSN(faultproxy.StandStill(dsn, 1_800_000_000)), sql.DefaultTimeouts, 2)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { db.Close() })
	before, now := &Store{DB: db, Keys: ring(t, old)}, &Store{DB: db, Keys: ring(t, latest, old)}

	for name, change := range map[string]func(t *testing.T) (any, error){
		"a new one": func(*testing.T) (any, error) {
			return now.Put(alice, New{job.AppSecret{App: "shop", Name: "new"}, "value"})
		},
		"another value": func(*testing.T) (any, error) { return now.Put(alice, New{ofAll("pg"), "other"}) },
		"delete":        func(*testing.T) (any, error) { return nil, now.Delete(alice, ofAll("pg")) },
		"rotate": func(t *testing.T) (any, error) {
			done, err := now.Rotate(alice)
			return []any{done.Rotated, done.Failed}, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			faultproxy.RefuseEach(t, schema, func() (*faultproxy.Proxy, func() (any, error)) {
				put(t, before, "pg", "", "of all")
				put(t, before, "pg", "shop", "of shop")
				return proxy, func() (any, error) {
					answer, err := change(t)
					if err != nil {
						return nil, err
					}

					values := map[string]string{}
					for _, name := range []job.Secret{"pg", "new"} {
						for _, app := range []string{"shop", "any"} {
							if values[app+"/"+string(name)], err = read(t, now, app, name); err != nil {
								return nil, err
							}
						}
					}

					_, err = direct.Raw().Exec(
						"UPDATE secret SET sealed = '', key_id = IF(key_id = ?, 'latest', 'old')", now.Keys.IDs()[0])
					if err != nil {
						return nil, err
					}

					_, err = direct.Raw().Exec("UPDATE audit SET reason = REPLACE(reason, ?, 'latest')",
						now.Keys.IDs()[0])
					return []any{answer, values}, err
				}
			})
		})
	}
}
