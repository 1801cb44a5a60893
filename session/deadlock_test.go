package session

import (
	"testing"
	"time"

	"go-crontab/test/faultproxy"
)

// TestSessionsRunAgain refuses each statement once, like a deadlock, in the transactions with which
// sessions come and go.
func TestSessionsRunAgain(t *testing.T) {
	f := setUp(t)
	schema := faultproxy.NewSchema(t, f.direct.Raw())
	for name, change := range map[string]func(f *fixture) func() (any, error){
		"join": func(f *fixture) func() (any, error) {
			clock := NewClock()
			if err := ReadClock(f.Context(), f.pulse(), clock); err != nil {
				f.Fatal(err)
			}

			return func() (any, error) {
				_, err := Register(f.Context(), f.db, clock, f.timings, Identity{Node: "n", Slots: 3, Zones: "z"},
					f.log)
				f.exec("UPDATE session SET id = 'random'")
				f.exec("UPDATE life SET session = 'random'")
				f.exec("UPDATE setting SET value = 'random' WHERE name = 'zones'")
				return nil, err
			}
		},
		"end": func(f *fixture) func() (any, error) {
			s := f.join("n")
			return func() (any, error) {
				err := s.End(f.Context(), f.db)
				f.exec("UPDATE audit SET was = '', at = 0") // these name the session and its lifetime
				f.exec("UPDATE life SET session = 'random'")
				return nil, err
			}
		},
		"reap": func(f *fixture) func() (any, error) {
			s, peer := f.join("n"), f.peer(7)
			f.exec("UPDATE session SET beat_at = 1 WHERE id = ?", peer[:])
			r, calls := f.reaper(s)
			if err := r.reap(f.Context(), at(0)); err != nil {
				f.Fatal(err)
			}

			return func() (any, error) {
				err := r.reap(f.Context(), at(time.Hour))
				f.exec("UPDATE session SET id = 'random', beat = 0, beat_at = 0")
				f.exec("UPDATE life SET session = 'random' WHERE node = 'n'")
				f.exec("UPDATE audit SET at = 0")
				return []int{len(calls.changed), len(calls.buried)}, err
			}
		},
		"bury": func(f *fixture) func() (any, error) {
			peer := f.peer(7)
			return func() (any, error) { return nil, Bury(f.Context(), f.db, peer, "n", f.log) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			faultproxy.RefuseEach(t, schema, func() (*faultproxy.Proxy, func() (any, error)) {
				f := connect(t, faultproxy.StandStill(f.dsn, 1_800_000_000))
				return f.proxy, change(f)
			})
		})
	}
}
