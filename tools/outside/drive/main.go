// Command drive uses a cluster through a client generated from its OpenAPI document, and calls
// every operation below /api. So it proves that a stranger's program can do everything in the
// document.
//
//	GOCRONTAB_SERVER=http://127.0.0.1:8610 GOCRONTAB_TOKEN=… drive openapi.json
//
// Use a cluster for experiments: it is paused, and its nodes are drained, for a moment.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	. "go-crontab/tools/outside/client"

	"github.com/oapi-codegen/nullable"
	"github.com/oapi-codegen/runtime/types"
)

func main() {
	if len(os.Args) != 2 {
		fail("usage: drive FILE")
	}

	jar, err := cookiejar.New(nil)
	if err != nil {
		fail("%v", err)
	}
	w := &witness{}

	c, err := NewClientWithResponses(os.Getenv("GOCRONTAB_SERVER"),
		WithHTTPClient(&http.Client{Transport: w, Jar: jar, Timeout: time.Minute}),
		WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+os.Getenv("GOCRONTAB_TOKEN"))
			return nil
		}))
	if err != nil {
		fail("%v", err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()

	d := &driver{c, ctx}
	d.public()
	d.shared()
	d.alerts()
	d.jobs()
	d.many()
	d.events()
	d.runs()
	d.files()
	d.people()
	d.nodes()

	if missing := w.missing(os.Args[1]); missing != nil {
		fail("nobody used %s: add calls to tools/outside/drive", strings.Join(missing, ", "))
	}

	fmt.Println("used every operation of the document")
}

type driver struct {
	*ClientWithResponses
	ctx context.Context
}

// public uses the operations without a token.
func (d *driver) public() {
	ok(d.GetOpenAPIWithResponse(d.ctx, nil))
	ok(d.GetOpenAPIAsYAMLWithResponse(d.ctx, nil))
	ok(d.GetManifestSchemaWithResponse(d.ctx, nil))
	ok(d.IsAliveWithResponse(d.ctx))
	ok(d.IsReadyWithResponse(d.ctx))
	must(ok(d.ListWaysInWithResponse(d.ctx)).JSON200.Token, "one can sign in with a token")
}

// shared makes the things that jobs use.
func (d *driver) shared() {
	ok(d.PutGroupWithResponse(d.ctx, "outside", nil, GroupInput{Slots: to(2)}))
	must(*ok(d.GetGroupWithResponse(d.ctx, "outside")).JSON200.Slots == 2, "a group has its slots")
	must(len(ok(d.ListGroupsWithResponse(d.ctx, nil)).JSON200.Items) == 1, "groups are listed")

	ok(d.CreateCalendarWithResponse(d.ctx, nil, NewCalendarInput{Name: "outside", ExcludeWeekdays: &[]string{"sun"}}))
	var day CalendarInput_Exclude_Item
	check(day.FromCalendarDayInput(CalendarDayInput{Date: "2027-01-01", Note: to("New Year")}))
	ok(d.PutCalendarWithResponse(d.ctx, "outside", nil, CalendarInput{Exclude: &[]CalendarInput_Exclude_Item{day}}))
	ok(d.ImportCalendarWithBodyWithResponse(d.ctx, "outside", &ImportCalendarParams{Format: to(Csv)}, "text/csv",
		strings.NewReader("2027-12-25,,exclude,Christmas\n")))
	must(len(ok(d.ListCalendarsWithResponse(d.ctx, nil)).JSON200.Items) == 1, "calendars are listed")
	must(ok(d.GetCalendarWithResponse(d.ctx, "outside")).JSON200.Name == "outside", "a calendar has its name")
	from := types.Date{Time: time.Date(2027, 12, 24, 0, 0, 0, 0, time.UTC)}
	end := types.Date{Time: time.Date(2027, 12, 26, 0, 0, 0, 0, time.UTC)}
	must(len(ok(d.ListCalendarDaysWithResponse(d.ctx, "outside",
		&ListCalendarDaysParams{From: &from, To: &end})).JSON200.Items) == 3, "each day of three is told")

	must(ok(d.PutSecretWithResponse(d.ctx, "outside", nil,
		SecretInput{Value: "one of these days"})).JSON201.Name == "outside", "a secret has its name")
	must(!bytes.Contains(ok(d.ListSecretsWithResponse(d.ctx, nil)).Body, []byte("one of these")),
		"a secret is not shown")
	ok(d.RotateSecretsWithResponse(d.ctx, nil, NothingInput{}))

	must(len(ok(d.PreviewWithResponse(d.ctx, nil, PreviewInput{Schedule: to("0 3 * * *"),
		N: to(3)})).JSON200.Next) == 3, "a preview has as many as one asks for")
	must(len(ok(d.ReadCrontabWithResponse(d.ctx, nil, CrontabInput{Text: "0 3 * * * backup.sh\n"})).JSON200.Jobs) == 1,
		"a crontab has a job for each line")
}

// jobs uses the operations for authors of jobs.
func (d *driver) jobs() {
	var memory SizeInput
	check(memory.FromSizeInput1(512 << 20)) // a number of bytes, one of two forms
	key := "outside-1"

	spec := NewJobInput{
		Name: "backup", App: to("outside"), Command: to("sleep 100"), Schedule: to("0 3 * * *"),
		Timeout: to(Duration("5m")), Group: to("outside"),
		Calendars: &[]string{"outside"}, Labels: &map[string]string{"team": "data"},
		Limits: &LimitsInput{Memory: &memory}, Env: &map[string]string{"WORD": "{{secret.outside}}"},
	}

	made := ok(d.CreateJobWithResponse(d.ctx, &CreateJobParams{IdempotencyKey: &key}, spec)).JSON201
	again := ok(d.CreateJobWithResponse(d.ctx, &CreateJobParams{IdempotencyKey: &key}, spec)).JSON201
	must(made.Id == again.Id, "the same key makes one job")
	spec.Command = to("false")
	refused(409)(d.CreateJobWithResponse(d.ctx, &CreateJobParams{IdempotencyKey: &key}, spec))
	refused(422)(d.CreateJobWithResponse(d.ctx, nil, NewJobInput{Name: "bad", Command: to("true"),
		Schedule: to("99 * * * *")}))

	got := ok(d.GetJobWithResponse(d.ctx, made.Id, nil))
	must(got.JSON200.Limits != nil && *got.JSON200.Limits.Memory == "512MiB", "a size is what was meant")
	tag := got.HTTPResponse.Header.Get("ETag")
	changed := ok(d.ChangeJobWithResponse(d.ctx, made.Id, &ChangeJobParams{IfMatch: &tag}, JobPatch{
		Owner: nullable.NewNullableWithValue("ann"), Labels: nullable.NewNullNullable[map[string]*string](),
	})).JSON200
	must(changed.Owner == "ann" && len(changed.Labels) == 0, "a patch sets and removes")
	refused(412)(d.ChangeJobWithResponse(d.ctx, made.Id, &ChangeJobParams{IfMatch: &tag},
		JobPatch{Owner: nullable.NewNullableWithValue("bob")}))
	ok(d.ReplaceJobWithResponse(d.ctx, made.Id, nil, JobInput{Name: to("backup"), App: to("outside"),
		Command: to("echo started; sleep 100"), Every: to(Duration("1h"))}))
	must(ok(d.GetJobByNameWithResponse(d.ctx, "outside", "backup", nil)).JSON200.Id == made.Id,
		"a job is found by its name")
	ok(d.PutJobByNameWithResponse(d.ctx, "outside", "other", nil,
		JobInput{Command: to("true"), Schedule: to("@daily")}))
	must(len(ok(d.ListJobsWithResponse(d.ctx, &ListJobsParams{App: to("outside"), Limit: to(200)})).JSON200.Items) == 2,
		"jobs are listed")
	page := ok(d.ListJobsWithResponse(d.ctx, &ListJobsParams{Limit: to(1)})).JSON200

	must(page.Next != nil, "a list goes on with its cursor")
	next := ok(d.ListJobsWithResponse(d.ctx, &ListJobsParams{Limit: to(1), Cursor: page.Next})).JSON200
	must(len(next.Items) == 1, "a list goes on with its cursor")

	must(len(ok(d.ListVersionsWithResponse(d.ctx, made.Id, nil)).JSON200.Items) == 3, "versions are kept")
	must(ok(d.GetVersionWithResponse(d.ctx, made.Id, "1")).JSON200 != nil, "a version is shown")
	must(len(ok(d.DiffVersionsWithResponse(d.ctx, made.Id, "1", "3")).JSON200.Changes) > 0, "versions differ")
	ok(d.RollbackJobWithResponse(d.ctx, made.Id, nil, RollbackInput{Version: 1}))
	ok(d.ListDueTimesWithResponse(d.ctx, made.Id, &ListDueTimesParams{N: to(2)}))
	must(len(ok(d.ListUpcomingWithResponse(d.ctx, &ListUpcomingParams{App: to("outside"),
		Limit: to(5)})).JSON200.Items) == 5, "what is upcoming is listed")
	must(len(ok(d.CountUpcomingWithResponse(d.ctx,
		&CountUpcomingParams{Step: to(CountUpcomingParamsStepDay)})).JSON200.Counts) == 7, "days of a week are counted")
	must(bytes.Contains(ok(d.GetUpcomingFeedWithResponse(d.ctx, &GetUpcomingFeedParams{App: to("outside")})).Body,
		[]byte("BEGIN:VEVENT")), "a calendar has events")
	ok(d.ExplainWithResponse(d.ctx, made.Id, &ExplainParams{At: time.Now()}))

	must(ok(d.PauseJobWithResponse(d.ctx, made.Id, nil, PauseInput{Reason: to("moving")})).JSON200.Paused,
		"a job is paused")
	must(len(ok(d.ListPausesWithResponse(d.ctx)).JSON200.Items) == 0, "a paused job is no paused app")
	ok(d.ResumeJobWithResponse(d.ctx, made.Id, nil, NothingInput{}))
	must(len(ok(d.ListAppsWithResponse(d.ctx)).JSON200.Items) > 0, "an app is listed")
	ok(d.PauseAppWithResponse(d.ctx, "outside", nil, PauseInput{}))
	must(len(ok(d.ListPausesWithResponse(d.ctx)).JSON200.Items) == 1, "a paused app is listed")
	ok(d.ResumeAppWithResponse(d.ctx, "outside", nil, NothingInput{}))
	ok(d.PutLimitsWithResponse(d.ctx, "outside", nil, AppLimitsInput{Jobs: to(1000)}))
	must(*ok(d.GetLimitsWithResponse(d.ctx, "outside")).JSON200.Jobs == 1000, "an app has limits")
	must(len(ok(d.ListLimitsWithResponse(d.ctx)).JSON200.Items) == 1, "limits are listed")
	ok(d.DeleteLimitsWithResponse(d.ctx, "outside"))
}

// many changes all jobs that match a filter.
func (d *driver) many() {
	for _, name := range []string{"a", "b", "c"} {
		ok(d.PutJobByNameWithResponse(d.ctx, "many", name, nil,
			JobInput{Command: to("true"), Schedule: to("0 3 1 1 *")}))
	}

	app := to("many")
	dry := ok(d.PauseJobsWithResponse(d.ctx, &PauseJobsParams{App: app, DryRun: to(PauseJobsParamsDryRunTrue)},
		PauseInput{})).JSON200
	must(dry.DryRun && dry.Matched != nil && *dry.Matched == 3, "a dry run counts")
	must(ok(d.PauseJobsWithResponse(d.ctx, &PauseJobsParams{App: app}, PauseInput{})).JSON200.Changed == 3,
		"all are paused")
	must(ok(d.ResumeJobsWithResponse(d.ctx, &ResumeJobsParams{App: app}, NothingInput{})).JSON200.Changed == 3,
		"all are resumed")
	must(ok(d.RunJobsWithResponse(d.ctx, &RunJobsParams{App: app}, NothingInput{})).JSON200.Changed == 3, "all run")
	must(ok(d.DeleteJobsWithResponse(d.ctx, &DeleteJobsParams{App: app}, NothingInput{})).JSON200.Changed == 3,
		"all are deleted")
	refused(422)(d.DeleteJobsWithResponse(d.ctx, nil, NothingInput{})) // neither a filter nor "all"
}

// events listens until the creation of a job arrives.
func (d *driver) events() {
	ctx, cancel := context.WithTimeout(d.ctx, time.Minute)
	defer cancel()

	stream, err := d.WatchEvents(ctx, &WatchEventsParams{App: to("listened")})
	check(err)
	defer stream.Body.Close()

	must(stream.StatusCode == 200, "there is a stream")

	made := false
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		if !made { // the stream has begun
			made = true
			ok(d.PutJobByNameWithResponse(d.ctx, "listened", "j", nil,
				JobInput{Command: to("true"), Schedule: to("0 3 1 1 *")}))
		}
		if strings.Contains(lines.Text(), `"listened"`) {
			return
		}
	}

	fail("the stream ended, and did not tell of the job: %v", ctx.Err())
}

// runs starts a run of a job, reads its output, and kills it.
func (d *driver) runs() {
	job := ok(d.CreateJobWithResponse(d.ctx, nil, NewJobInput{Name: "long", Command: to("echo started; sleep 100"),
		Schedule: to("0 3 1 1 *"), Grace: to(Duration("1s"))})).JSON201
	ok(d.RunJobWithResponse(d.ctx, job.Id, nil, ParamsInput{}))
	var id int
	_, err := fmt.Sscan(job.Id, &id)
	check(err)
	var run Run

	until("it runs", func() bool {
		items := ok(d.ListRunsWithResponse(d.ctx, &ListRunsParams{JobId: &id,
			State: to(ListRunsParamsStateRunning)})).JSON200.Items
		if len(items) == 1 {
			run = items[0]
		}
		return len(items) == 1
	})

	until("it has written", func() bool {
		return strings.Contains(ok(d.GetOutputWithResponse(d.ctx, run.Id, &GetOutputParams{From: to(0)})).JSON200.Text,
			"started")
	})
	ok(d.KillRunWithResponse(d.ctx, run.Id, nil, NothingInput{}))
	until("it was killed", func() bool {
		run = *ok(d.GetRunWithResponse(d.ctx, run.Id)).JSON200
		return run.Outcome != nil && *run.Outcome == OutcomeKilled
	})

	must(len(ok(d.ListHistoryWithResponse(d.ctx, job.Id, nil)).JSON200.Items) == 1, "it is in the history")
	again := ok(d.RerunRunsWithResponse(d.ctx,
		&RerunRunsParams{Ids: &run.Id, DryRun: to(RerunRunsParamsDryRunTrue)}, NothingInput{})).JSON200
	must(again.Started == 1, "a killed run could run again")
	must(ok(d.GetJobStatsWithResponse(d.ctx, nil)).JSON200.Totals.Jobs > 0, "there are figures of jobs")
	must(ok(d.GetCountsWithResponse(d.ctx)).JSON200.NodesReady == 1, "a node is ready")
	slots := ok(d.ListSlotsWithResponse(d.ctx, &ListSlotsParams{From: time.Now(), JobId: &id})).JSON200
	must(len(slots.Items) == 1, "a job has slots")

	due := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	fill := ok(d.StartBackfillWithResponse(d.ctx, job.Id, nil,
		BackfillInput{From: due, To: to(due.AddDate(0, 0, 1))})).JSON202
	must(ok(d.GetBackfillWithResponse(d.ctx, fill.Id)).JSON200.JobId == job.Id, "a backfill is of its job")
	must(len(ok(d.ListBackfillsWithResponse(d.ctx, nil)).JSON200.Items) == 1, "backfills are listed")
	must(len(ok(d.ListBackfillDuesWithResponse(d.ctx, fill.Id, nil)).JSON200.Items) == 1, "its due times are listed")
	ok(d.CancelBackfillWithResponse(d.ctx, fill.Id, nil, NothingInput{}))
	ok(d.DeleteJobWithResponse(d.ctx, job.Id, nil))
	refused(404)(d.GetJobWithResponse(d.ctx, job.Id, nil))
}

// files applies an export, which changes nothing, and removes everything with a prune.
func (d *driver) files() {
	must(len(ok(d.ExportWithResponse(d.ctx, &ExportParams{App: to("outside")})).JSON200.Items) == 2,
		"jobs are exported")
	job := ManifestJobInput{Name: "third", App: to("outside"), Command: to("true"), Schedule: to("@daily")}
	body := ApplyInput{Jobs: &[]ManifestJobInput{job}, Prune: &PruneInput{App: to("outside")}, DryRun: to(true)}
	must(ok(d.ApplyWithResponse(d.ctx, nil, body)).JSON200.Changed == 3, "one comes, two go")
	body.DryRun = nil
	ok(d.ApplyWithResponse(d.ctx, nil, body))
	must(ok(d.ApplyWithResponse(d.ctx, nil, body)).JSON200.Changed == 0, "the second time there is nothing to do")
	ok(d.DeleteGroupWithResponse(d.ctx, "outside"))
	ok(d.DeleteCalendarWithResponse(d.ctx, "outside"))
	ok(d.DeleteSecretWithResponse(d.ctx, "outside", nil))
}

// people uses the operations about permissions and the audit log.
func (d *driver) people() {
	token := ok(d.CreateTokenWithResponse(d.ctx, nil, TokenInput{Name: "reader", Role: Viewer,
		Apps: &[]string{"outside"}, Expires: to("1h")})).JSON201
	must(ok(d.GetTokenWithResponse(d.ctx, token.Id)).JSON200.Name == "reader", "a token has its name")
	must(len(ok(d.ListTokensWithResponse(d.ctx, nil)).JSON200.Items) == 2, "tokens are listed")

	as := func(token string) RequestEditorFn {
		return func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+token)
			return nil
		}
	}

	must(ok(d.GetMeWithResponse(d.ctx, as(token.Token))).JSON200.Name == "reader", "a token is who it says")
	refused(403)(d.RunJobWithResponse(d.ctx, "1", nil, ParamsInput{}, as(token.Token)))
	login := ok(d.LoginWithResponse(d.ctx, LoginInput{Token: token.Token})).JSON200
	nobody := func(_ context.Context, r *http.Request) error { r.Header.Del("Authorization"); return nil }

	browser := func(_ context.Context, r *http.Request) error {
		r.Header.Del("Authorization")
		r.Header.Set("X-Gocrontab-Login", login.LoginKey)
		return nil
	}

	must(ok(d.GetMeWithResponse(d.ctx, browser)).JSON200.Name == "reader", "the login is that of the token")
	logins := ok(d.ListLoginsWithResponse(d.ctx, &ListLoginsParams{Who: to("reader")})).JSON200.Items
	must(len(logins) == 1 && logins[0].Who == "reader", "who is signed in is listed")
	ok(d.EndLoginWithResponse(d.ctx, logins[0].Id))
	refused(401)(d.GetMeWithResponse(d.ctx, browser))
	refused(404)(d.EndLoginsWithResponse(d.ctx, &EndLoginsParams{Who: to("reader")}))
	login = ok(d.LoginWithResponse(d.ctx, LoginInput{Token: token.Token})).JSON200
	refused(401)(d.GetMeWithResponse(d.ctx, nobody)) // only the cookie
	ok(d.LogoutWithResponse(d.ctx, NothingInput{}, browser))
	refused(401)(d.GetMeWithResponse(d.ctx, browser))
	ok(d.RevokeTokenWithResponse(d.ctx, token.Id))
	refused(401)(d.RunJobWithResponse(d.ctx, "1", nil, ParamsInput{}, as(token.Token)))
	refused(404)(d.BeginOIDCWithResponse(d.ctx, NothingInput{})) // no provider is configured
	refused(404)(d.EndOIDCWithResponse(d.ctx, ReturnInput{Flow: "x", State: "x"}))
	must(len(ok(d.ReturnOIDCWithResponse(d.ctx, nil)).Body) > 0, "the provider sends browsers back to the console")

	lines := ok(d.ListAuditWithResponse(d.ctx, &ListAuditParams{App: to("outside"), Limit: to(200)})).JSON200.Items
	for _, action := range []string{"create", "update", "rollback", "pause", "resume", "delete"} {
		recorded := func(e AuditEntry) bool { return e.Action == action && e.Who != "" && e.Origin != nil }
		must(slices.ContainsFunc(lines, recorded), "the audit has who did "+action)
	}

	must(len(ok(d.VerifyAuditWithResponse(d.ctx, nil)).JSON200.Faults) == 0, "the audit is as it was written")
}

func (d *driver) nodes() {
	must(ok(d.GetClusterWithResponse(d.ctx)).JSON200 != nil, "there is a cluster")
	ok(d.PutBackupWithResponse(d.ctx, BackupInput{NextWithin: "26h"}))
	must(ok(d.GetClusterWithResponse(d.ctx)).JSON200.Backup != nil, "the last backup is known")
	ok(d.PutRetentionWithResponse(d.ctx, nil, RetentionInput{Age: to(Duration("2160h")),
		Failures: to(Duration("8760h"))}))
	must(*ok(d.PutAppRetentionWithResponse(d.ctx, "outside", nil, RetentionInput{Runs: to(100)})).JSON200.Runs == 100,
		"a rule is what was meant")
	must(len(ok(d.ListRetentionWithResponse(d.ctx)).JSON200.Items) == 2, "rules are listed")
	must(len(ok(d.ExamineClusterWithResponse(d.ctx)).JSON200.Checks) > 20, "doctor looks at many things")
	must(ok(d.GetStatsWithResponse(d.ctx, nil)).JSON200 != nil, "there are figures")
	ok(d.PauseClusterWithResponse(d.ctx, nil, PauseInput{Reason: to("outside")}))
	ok(d.ResumeClusterWithResponse(d.ctx, nil, NothingInput{}))
	must(ok(d.PutLogLevelWithResponse(d.ctx, nil, LogLevelInput{Level: "warn",
		For: to(Duration("1m"))})).JSON200.Until != nil, "a level holds for a while")
	must(ok(d.GetLogLevelWithResponse(d.ctx)).JSON200.Level == "warn", "it is what it was made")
	ok(d.ListHandlersWithResponse(d.ctx))
	ok(d.DisableHandlerWithResponse(d.ctx, "mail", nil, ReasonInput{}))
	ok(d.EnableHandlerWithResponse(d.ctx, "mail", nil, NothingInput{}))
	nodes := ok(d.ListNodesWithResponse(d.ctx)).JSON200.Items
	must(len(nodes) > 0, "there are nodes")
	name := nodes[0].Name
	ok(d.GetNodeWithResponse(d.ctx, name))
	ok(d.CordonNodeWithResponse(d.ctx, name, nil, ReasonInput{Reason: to("outside")}))
	ok(d.DrainNodeWithResponse(d.ctx, name, nil, ReasonInput{}))
	ok(d.UncordonNodeWithResponse(d.ctx, name, nil, NothingInput{}))
}

// answer is the common part of the client's answers.
type answer interface {
	StatusCode() int
	GetBody() []byte
}

// ok expects an answer with a status of success.
func ok[A answer](a A, err error) A {
	check(err)
	if s := a.StatusCode(); s < 200 || s > 299 {
		fail("%T: got %d %s", a, s, a.GetBody())
	}
	return a
}

// refused expects an answer with the given status.
func refused(status int) func(a answer, err error) {
	return func(a answer, err error) {
		check(err)
		if a.StatusCode() != status {
			fail("%T: got %d %s, want %d", a, a.StatusCode(), a.GetBody(), status)
		}
	}
}

func must(is bool, what string) {
	if !is {
		fail("it is not so that %s", what)
	}
}

func until(what string, is func() bool) {
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			fail("not within a minute: %s", what)
		}
	}
}

func check(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func to[T any](v T) *T { return &v }

// witness records the requests.
type witness struct {
	mu   sync.Mutex
	made []string
}

func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.made = append(w.made, r.Method+" "+r.URL.EscapedPath())
	w.mu.Unlock()
	return http.DefaultTransport.RoundTrip(r)
}

// missing returns the operations of a document without a request.
func (w *witness) missing(file string) []string {
	text, err := os.ReadFile(file)
	check(err)

	var doc struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		} `json:"paths"`
	}

	check(json.Unmarshal(text, &doc))

	used := map[string]bool{}
	for _, request := range w.made {
		best := ""
		for path := range doc.Paths {
			// If one path has a name where the other has a placeholder, the name wins: { sorts
			// after all letters.
			if _, made, _ := strings.Cut(request, " "); matches(path, made) && (best == "" || path < best) {
				best = path
			}
		}

		method, _, _ := strings.Cut(request, " ")
		used[doc.Paths[best][strings.ToLower(method)].ID] = true
	}

	var out []string
	for path, methods := range doc.Paths {
		for _, op := range methods {
			if !used[op.ID] && strings.HasPrefix(path, "/api/") { // other paths are pages and their assets
				out = append(out, op.ID)
			}
		}
	}

	slices.Sort(out)
	return out
}

func matches(pattern, path string) bool {
	return slices.EqualFunc(strings.Split(pattern, "/"), strings.Split(path, "/"), func(want, got string) bool {
		return want == got || strings.HasPrefix(want, "{") && got != ""
	})
}
