package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestMock lets an HTTP job call `go-crontab mock`, which refuses it.
func TestMock(t *testing.T) {
	t.Parallel()

	m := start(t, nil, "mock", "--listen", "127.0.0.1:0", "--status", "503", "--body", "busy")
	url := m.says(`listening on (http://[^,]+)`, 20*time.Second)

	s := serve(t, migrated(t), "one", "--http-allow", "127.0.0.1").ready()
	s.wants(0, "job add hook --schedule @yearly --http "+url+"/hook?shop=7 --body {{job}}")
	s.wants(1, "job run hook --wait", "503", "busy")
	m.says(`#1 POST /hook\?shop=7  from 127\.0\.0\.1:[^$]*X-Gocrontab-Launch: [^$]*\| hook\n`, 10*time.Second)

	resp, err := http.Post(url, "text/plain", strings.NewReader(strings.Repeat("x", mockBody+1)))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	m.says(`only the first 64 KiB are shown`, 10*time.Second)
}

func TestMockRefuses(t *testing.T) {
	t.Parallel()

	for line, want := range map[string]string{
		"mock --status 99":                       "--status 99 is not the status of an answer; want 200 to 599",
		"mock --delay soon":                      "--delay soon is not a duration",
		"mock --delay 2h":                        "from 0s to 1h",
		"mock --listen nowhere":                  "--listen nowhere",
		"mock --signing-secret-file /not/there":  "no such file",
		"mock --status 200 --listen 127.0.0.1:x": "--listen 127.0.0.1:x",
	} {
		code, out := run(t, nil, strings.Fields(line)...)
		if code != exitUsage || !strings.Contains(out, want) {
			t.Errorf("%s: got code %d, %s; want %q", line, code, out, want)
		}
	}
}
