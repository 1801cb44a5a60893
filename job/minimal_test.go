package job

import (
	"encoding/json"
	"testing"
	"time"
)

func TestMinimal(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for given, want := range map[string]string{
		`{"name":"a","schedule":"0 3 * * *","command":"true"}`:                                                                           `{"app":"default","name":"a","schedule":"0 3 * * *","command":"true"}`,
		`{"name":"a","schedule":"@daily","timezone":"utc","command":"a && b <c"}`:                                                        `{"app":"default","name":"a","schedule":"@daily","command":"a && b <c"}`,
		`{"name":"a","every":"1h","command":"true"}`:                                                                                     `{"app":"default","name":"a","every":"1h","start":"2027-01-01T01:00:00Z","command":"true"}`,
		`{"name":"a","at":"2027-01-01T01:00:00+01:00","timezone":"UTC","command":"true"}`:                                                `{"app":"default","name":"a","at":"2027-01-01T00:00:00Z","timezone":"UTC","command":"true"}`,
		`{"name":"a","schedule":"@daily","timezone":"europe/berlin","command":"true"}`:                                                   `{"app":"default","name":"a","schedule":"@daily","timezone":"Europe/Berlin","command":"true"}`,
		`{"name":"a","schedule":"@daily","command":"x","overlap":"queue","queue":10}`:                                                    `{"app":"default","name":"a","schedule":"@daily","command":"x","overlap":"queue"}`,
		`{"name":"a","schedule":"@daily","command":"x","retry":{"attempts":3,"factor":1}}`:                                               `{"app":"default","name":"a","schedule":"@daily","command":"x","retry":{"attempts":3}}`,
		`{"name":"a","schedule":"@daily","command":"x","retry":{"attempts":3,"backoff":"2h","max_backoff":"2h"}}`:                        `{"app":"default","name":"a","schedule":"@daily","command":"x","retry":{"attempts":3,"backoff":"2h"}}`,
		`{"name":"a","schedule":"@daily","command":"x","misfire":{"policy":"all","max_count":100,"max_age":"2h"}}`:                       `{"app":"default","name":"a","schedule":"@daily","command":"x","misfire":{"policy":"all","max_age":"2h"}}`,
		`{"name":"a","schedule":"@daily","http":{"url":"http://x","tls":{},"body":"b","method":"POST","expect":["2xx"]},"timeout":"5m"}`: `{"app":"default","name":"a","schedule":"@daily","http":{"url":"http://x","body":"b","tls":{}}}`,
		`{"name":"a","schedule":"@daily","command":"x","limits":{"memory":"1GiB","core":"0B"},"labels":{},"env":{"B":"1","A":""}}`:       `{"app":"default","name":"a","schedule":"@daily","command":"x","env":{"A":"","B":"1"},"limits":{"memory":"1GiB","core":"0B"}}`,
		`{"name":"a","schedule":"@daily","command":"x","max_fires":3}`:                                                                   `{"app":"default","name":"a","schedule":"@daily","start":"2027-01-01T00:00:00Z","max_fires":3,"command":"x"}`,
	} {
		var s Spec
		if err := json.Unmarshal([]byte(given), &s); err != nil {
			t.Fatalf("%s: %v", given, err)
		}

		s.Defaults(now)
		got, err := s.Minimal()
		if err != nil || string(got) != want {
			t.Errorf("%s: got\n%s, %v, want\n%s", given, got, err, want)
		}

		again, err := DecodeSpec(string(got))
		if err != nil {
			t.Fatal(err)
		}

		if again.Defaults(now.AddDate(1, 0, 0)); !again.Same(&s) {
			t.Errorf("%s: %s comes to something else: %+v", given, got, again.Diff(&s))
		}
	}
}
