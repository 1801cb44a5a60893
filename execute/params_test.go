package execute

import (
	"slices"
	"testing"

	"go-crontab/job"
)

// TestParamsOfAnAttempt: commands, requests and handlers get the values of parameters, and secrets
// among them only when it begins.
func TestParamsOfAnAttempt(t *testing.T) {
	t.Parallel()
	x := &told{}
	kinds := &Kinds{
		Command: x, HTTP: x, Handler: x, Stored: &kept{values: map[job.Secret]string{"db": "hunter2-pg"}},
	}
	for _, a := range []Attempt{
		{Command: "true"}, {Handler: "h"},
		{HTTP: &job.HTTP{Method: "POST", URL: "http://a.example/{{param.day}}", Body: "{{param.note}} {{param.gone}} {{param.key}}"}},
	} {
		a.Params = paramTexts(map[string]job.Value{"day": `"2026-11-01"`, "note": `"a \"b\""`})
		a.secretParams = map[string]job.Secret{"key": "db"}
		if r := kinds.Execute(t.Context(), a); r.Outcome != job.Succeeded {
			t.Fatalf("%+v: %s", a, r.Reason.Text)
		}

		got := *x.last
		if got.Params["day"] != "2026-11-01" || got.Params["key"] != "hunter2-pg" || got.known.mask("hunter2-pg") != stars {
			t.Errorf("got %v", got.Params)
		}
		if env := about(got, []string{"X=y"}); !slices.Contains(env, "GOCRONTAB_PARAM_NOTE=a \"b\"") || !slices.Contains(env, "X=y") {
			t.Errorf("got %q", env)
		}
		if got.HTTP == nil {
			continue
		}
		call, err := got.HTTP.Fill(job.Placeholders{Param: got.param, Secret: got.known.value})
		if err != nil || call.URL.Path != "/2026-11-01" || call.Body != `a "b"  hunter2-pg` {
			t.Errorf("got %+v, %v", call, err)
		}
		if !job.HasSecrets(got.HTTP.Body, got.secretParams) || job.HasSecrets(got.HTTP.URL, got.secretParams) {
			t.Error("the body has a secret, the URL has none")
		}
	}
}
