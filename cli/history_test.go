package cli

import (
	"net/http"
	"strings"
	"testing"
)

// TestHistoryOfADeletedJob: the runs of a deleted job are found by its name and by its id.
func TestHistoryOfADeletedJob(t *testing.T) {
	t.Parallel()

	const runs = `{"items":[{"id":"7","job_id":"12","app":"ops","job":"a/b","state":"ended","outcome":"failed"}]}`
	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/jobs/12/history": always(200, runs),
		"GET /api/v1/runs": func(r *http.Request) (int, string) {
			q := r.URL.Query()
			if q.Get("job") == "ops/a/b" || q.Get("job_id") == "12" {
				return 200, runs
			}
			return 404, `{"type":"urn:go-crontab:problem:not-found","title":"Not found","status":404}`
		},
		"GET /api/v1/jobs": always(200, `{"items":[]}`),
	})

	for _, line := range []string{
		"job history ops/a/b", "job history 12", "run ls --job ops/a/b", "run ls --job 12",
	} {
		args := append(strings.Fields(line), "-o", "name", "--server", f.URL)
		if got := command(args...); got.code != 0 || got.out != "7\n" {
			t.Errorf("%s: got %+v", line, got)
		}
	}

	for _, line := range []string{"job history nix", "job history 13", "run ls --job nix", "run ls --job 13"} {
		if got := command(append(strings.Fields(line), "--server", f.URL)...); got.code != exitNotFound ||
			!strings.Contains(got.err, "there is no job") {
			t.Errorf("%s: got %+v", line, got)
		}
	}
}
