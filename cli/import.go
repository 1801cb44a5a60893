package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/crontab"
	"go-crontab/internal/manifest"
	"go-crontab/job"
	"go-crontab/job/problem"

	"github.com/spf13/cobra"
)

func importCommand(c *console) *cobra.Command {
	return newGroup("import", "Import jobs from other schedulers", importCrontab(c))
}

// importFlags are the flags of `import crontab`.
type importFlags struct {
	system, personal bool
	app, user, zone  string
	selector         string
	labels           []string
	timeout          time.Duration
	skip             []string
	replace, dryRun  bool
}

// imported is a crontab line that becomes a job.
type imported struct {
	file string
	crontab.Entry
	object  json.RawMessage // the job in the file format
	action  job.Applying    // created, updated or unchanged; empty if no server was asked
	outlook *view.Preview
}

// importReport is the output of -o json.
type importReport struct {
	DryRun  bool           `json:"dry_run"`
	Jobs    []importedJob  `json:"jobs"`
	Notes   []importedNote `json:"notes,omitempty"`
	Refused []importedNote `json:"refused,omitempty"`
	Skipped []importedNote `json:"skipped,omitempty"`

	files  int            // number of files read
	labels []crontabLabel // of the files read
}

type importedJob struct {
	File  string          `json:"file"`
	Line  int             `json:"line"`
	Text  string          `json:"text"`
	Words string          `json:"words"`
	Next  []view.DueTime  `json:"next"`
	Notes []problem.Text  `json:"notes,omitempty"`
	Does  job.Applying    `json:"action,omitempty"` // see imported.action
	Job   json.RawMessage `json:"job"`
}

type importedNote struct {
	File  string `json:"file"`
	Line  int    `json:"line,omitempty"`
	Field string `json:"field,omitempty"`
	problem.Text
}

func (n *importedNote) String() string {
	return manifest.Place{File: n.File, Line: n.Line}.String() + ": " + n.Message
}

func importCrontab(c *console) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use: "crontab FILE…", Short: "Import the lines of crontabs as jobs",
		Args: wants(1, -1, "FILE, a folder such as /etc/cron.d, or - for standard input"),
		Long: `Import the lines of crontabs as jobs: all of them, or none if one line cannot be imported. Notes
name the differences from cron for each line. --dry-run shows the jobs without importing them.

/etc/crontab and the files of /etc/cron.d have a column for the user; for other files, --system says
so. Times are in this machine's time zone, unless --timezone or CRON_TZ in the file names another.
Jobs are named after their program, and after their file in /etc/cron.d.

A crontab belongs to a machine, and a job to the cluster: with --selector node=NAME the jobs stay on
a machine. --timeout ends runs that hang; without it, a run that hangs keeps its job from running.

If a job of the same name exists and is the same, it is left unchanged. If it differs, nothing is
imported, unless the job came from the same crontab on the same machine, or --replace is given.`,
		Example: `  crontab -l | go-crontab import crontab - --dry-run
  go-crontab import crontab /etc/crontab /etc/cron.d --app system --selector node=web-1 --timeout 2h
  go-crontab import crontab old.crontab --timezone Europe/Berlin --user www-data
  go-crontab import crontab /etc/crontab --dry-run -o manifest > jobs.yaml`,
	}

	r := newRemote(c, cmd, "table", "json", "yaml", "name", "manifest")
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false,
		"only show each line's job and its next three due times")
	flags.BoolVar(&f.system, "system", false, "the lines have a column for the user")
	flags.BoolVar(&f.personal, "personal", false, "the lines have no column for the user, whatever the path")
	flags.StringVarP(&f.app, "app", "a", job.DefaultApp, "app of the jobs")
	flags.StringVar(&f.user, "user", "", `run the jobs as this user, "" for the node's own (default from the crontab)`)
	allowEmpty(flags, "user")
	flags.StringVarP(&f.zone, "timezone", "z", "", "time zone of the crontab (default this machine's)")
	flags.StringVar(&f.selector, "selector", "", "which nodes may run the jobs, such as node=web-1 (default all)")
	flags.StringArrayVarP(&f.labels, "label", "l", nil, "label of the jobs, key=value; may be repeated")
	durationVar(flags, &f.timeout, "timeout", 0, "kill runs after this long (default never)")
	flags.StringSliceVar(&f.skip, "skip", nil,
		"leave out this line: 7, or FILE:7 with several files; may be repeated, or separated by commas")
	flags.BoolVar(&f.replace, "replace", false, "replace existing jobs of the same name")
	_ = cmd.RegisterFlagCompletionFunc("timezone", completeZones)
	_ = cmd.RegisterFlagCompletionFunc("app", completeApps(c))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.system && f.personal {
			return usageError("--system and --personal cannot be combined")
		}
		if r.format == "manifest" && !f.dryRun {
			return usageError("-o manifest needs --dry-run: it prints a file for apply, and imports nothing")
		}
		lines, report, err := f.read(c, args, cmd.Flags().Changed("user"))
		if err != nil {
			return err
		}
		return r.importLines(cmd, &f, lines, report)
	}

	return cmd
}

// read reads the crontabs.
func (f *importFlags) read(
	c *console, args []string, hasUser bool,
) (lines []imported, report *importReport, err error) {
	report = &importReport{DryRun: f.dryRun, Jobs: []importedJob{}}
	zone, why := f.zone, ""
	if zone == "" {
		zone, why = localZone()
	}

	if _, err := job.LoadZone(zone); err != nil {
		return nil, nil, usageError("--timezone: %w", err)
	}
	common, err := f.common()
	if err != nil {
		return nil, nil, err
	}

	files, left, err := crontabFiles(args)
	if err != nil {
		return nil, nil, &exitError{code: exitUsage, err: err}
	}

	skip, err := skipped(f.skip, files)
	if err != nil {
		return nil, nil, err
	}

	// Note the files that were left out, because cron ignores them in folders.
	names := &crontab.Names{}
	report.files = len(files)
	for _, file := range left {
		report.Notes = append(report.Notes, importedNote{File: file, Text: problem.ImportFileLeftOut.Of()})
	}

	told := map[string]bool{}
	for _, file := range files {
		text, err := readCrontab(c, file)
		if err != nil {
			return nil, nil, &exitError{code: exitUsage, err: err}
		}

		label := labelOf(file)
		report.labels = append(report.labels, label)
		o := common
		o.Name, o.Zone, o.Skip = label.now, zone, skip[file]
		o.System = f.system || !f.personal && isSystem(file)
		if isInCronD(file) {
			o.File = filepath.Base(file)
		}

		if file == "-" {
			file = shownStdin
		}
		if hasUser {
			o.User = &f.user
		} else if owner := ownerOf(file); owner != "" && !o.System {
			o.User = &owner
			report.Notes = append(report.Notes, importedNote{File: file, Text: problem.ImportOwner.Of(owner)})
		}

		out := crontab.Read(text, o, names)
		if err := checkSkipped(o.Skip, file, out); err != nil {
			return nil, nil, err
		}

		for _, e := range out.Entries {
			for i := range e.Notes {
				e.Notes[i] = withFlag(e.Notes[i])
			}
			lines = append(lines, imported{file: file, Entry: e})
		}

		for _, n := range out.Notes {
			if n.Line == 0 && told[n.Message] { // already printed for another file
				continue
			}
			told[n.Message] = n.Line == 0
			report.Notes = append(report.Notes, importedNote{file, n.Line, n.Field, withFlag(n.Text)})
		}

		for _, n := range out.Refused {
			report.Refused = append(report.Refused, importedNote{file, n.Line, n.Field, withFlag(n.Text)})
		}

		for _, n := range out.Skipped {
			report.Skipped = append(report.Skipped, importedNote{File: file, Line: n, Text: problem.ImportLineLeftOut.Of()})
		}
	}

	ofZone := func(l imported) bool { return l.Job.Timezone == zone } // unless CRON_TZ names another zone
	if f.zone == "" && slices.ContainsFunc(lines, ofZone) {
		report.Notes = append([]importedNote{{File: lines[0].file, Text: problem.ImportZone.Of(zone, why)}},
			report.Notes...)
	}

	return lines, report, nil
}

// common returns the options that apply to all files.
func (f *importFlags) common() (o crontab.Options, err error) {
	o = crontab.Options{App: f.app, Selector: f.selector, Timeout: job.Duration(f.timeout)}
	if len(f.labels) > 0 {
		if o.Labels, err = parseLabels("--label", f.labels); err != nil {
			return o, err
		}
	}

	if err := o.Check(); err != nil {
		return o, usageError("%s", strings.Replace("--"+err.Error(), "--labels.", "--label ", 1))
	}
	return o, nil
}

// withFlag adds to a note the flag that selects the kind of crontab.
func withFlag(note problem.Text) problem.Text {
	switch note.Code {
	case problem.CrontabSystem.Code():
		note.Message += " Then import it with --system"
	case problem.CrontabPersonal.Code():
		note.Message += " Then import it with --personal"
	case problem.CrontabMachine.Code():
		note.Message += ": --selector"
	case problem.CrontabNoTimeout.Code():
		note.Message += ": --timeout"
	}
	return note
}

// skipped parses --skip into line numbers by file.
func skipped(given, files []string) (map[string][]int, error) {
	out := map[string][]int{}
	for _, s := range given {
		file, line := files[0], s
		if i := strings.LastIndexByte(s, ':'); i >= 0 {
			file, line = s[:i], s[i+1:]
			if file == shownStdin {
				file = "-"
			}
			if !slices.Contains(files, file) {
				return nil, usageError("--skip %s: %s is not one of the files to import", s, file)
			}
		} else if len(files) > 1 {
			return nil, usageError("--skip %s: there are %d files; say which one, as FILE:LINE, such as %s:%s", s,
				len(files),
				files[0], s)
		}

		n, err := strconv.Atoi(line)
		if err != nil || n < 1 {
			return nil, usageError("--skip %s: want a line number, or FILE:LINE", s)
		}

		out[file] = append(out[file], n)
	}

	return out, nil
}

// checkSkipped returns an error if a skipped line has no job, for example because the line is a
// comment or does not exist. The number is then probably wrong, and the line that the user meant
// would be imported.
func checkSkipped(skip []int, file string, out *crontab.File) error {
	lines := slices.Clone(out.Skipped)
	for _, e := range out.Entries {
		lines = append(lines, e.Line)
	}

	for _, n := range out.Refused {
		if n.Line == 0 {
			return nil // none of the lines was read
		}
		lines = append(lines, n.Line)
	}

	slices.Sort(lines)
	for _, n := range skip {
		if !slices.Contains(out.Skipped, n) {
			return usageError("--skip %d: line %d of %s has no job; lines with jobs: %s", n, n, plain(file),
				someOf(lines))
		}
	}
	return nil
}

// someOf lists the first numbers.
func someOf(numbers []int) string {
	const most = 20
	text := strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers[:min(len(numbers), most)]), "[]"), " ", ", ")
	switch {
	case len(numbers) == 0:
		return "none"
	case len(numbers) > most:
		return fmt.Sprintf("%s and %d more", text, len(numbers)-most)
	}
	return text
}

// crontabFiles returns the files to read. In a folder it takes only files whose names cron accepts.
// left lists the other files of the folder.
func crontabFiles(args []string) (files, left []string, err error) {
	seen := map[string]bool{}
	add := func(file string) {
		full, err := filepath.Abs(file)
		if err != nil {
			full = file
		}
		if !seen[full] { // the file may be given twice, or lie in a given folder
			files = append(files, file)
		}
		seen[full] = true
	}

	for _, arg := range args {
		info, err := os.Stat(arg)
		if arg == "-" || err == nil && !info.IsDir() {
			add(arg)
			continue
		}
		if err != nil {
			return nil, nil, err
		}

		found, err := os.ReadDir(arg) // sorted
		if err != nil {
			return nil, nil, err
		}

		for _, d := range found {
			if d.IsDir() || strings.HasPrefix(d.Name(), ".") {
				continue
			}
			if strings.Trim(d.Name(), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" {
				add(filepath.Join(arg, d.Name()))
			} else {
				left = append(left, filepath.Join(arg, d.Name()))
			}
		}
	}

	if len(files) == 0 {
		return nil, nil,
			fmt.Errorf("%s: no crontab found; cron reads only files whose names consist of letters, digits, - and _",
				strings.Join(args, ", "))
	}

	return files, left, nil
}

// shownStdin is the name of standard input in messages.
const shownStdin = "standard input"

func readCrontab(c *console, file string) ([]byte, error) {
	from := c.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	return io.ReadAll(io.LimitReader(from, crontab.MaxSize+1))
}

// isSystem reports whether a path leads to a system crontab, which has a column for users. The path
// may lie below the root of another machine that is mounted or unpacked here.
func isSystem(file string) bool {
	full, err := filepath.Abs(file)
	return err == nil && (strings.HasSuffix(full, "/etc/crontab") || isInCronD(full))
}

// isInCronD reports whether a file lies in /etc/cron.d, where packages and services have crontabs.
func isInCronD(file string) bool {
	full, err := filepath.Abs(file)
	return err == nil && strings.HasSuffix(filepath.Dir(full), "/etc/cron.d")
}

// ownerOf returns the user of a personal crontab, or "". The path of the crontab names the user.
func ownerOf(file string) string {
	full, err := filepath.Abs(file)
	spools := []string{"/var/spool/cron/crontabs", "/var/spool/cron/tabs", "/var/spool/cron"}
	if err != nil || !slices.Contains(spools, filepath.Dir(full)) {
		return ""
	}
	return filepath.Base(full)
}

// crontabLabel is the label by which a later import recognises the jobs of a crontab. now contains
// the machine and the full path, or only the file name if the path is too long. before is the label
// of older versions. It does not contain the machine, so jobs of another machine may have the same
// label.
type crontabLabel struct{ now, before string }

func labelOf(file string) crontabLabel {
	if file == "-" {
		return crontabLabel{} // standard input has no identity
	}

	full, err := filepath.Abs(file)
	if err != nil || len(full) > job.MaxName {
		full = filepath.Base(file)
	}

	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}

	now := host + ":" + full
	if len(now) > job.MaxName {
		now = host + ":" + filepath.Base(file)
	}
	return crontabLabel{now, full}
}

// isMine reports whether an existing job was imported from the same crontab as a line.
func (l *imported) isMine(o *view.AppliedJob) bool {
	if l.Job.Labels == nil {
		return false
	}

	for _, c := range o.Changes {
		switch {
		case c.Field == "labels.crontab" && shownValue(c.Was) != labelOf(l.file).before:
			return false
		case c.Field == "labels.crontab" && slices.ContainsFunc(o.Changes, func(c job.Change) bool {
			return c.Field == "command" || c.Field == "stdin"
		}):
			return false // it may come from another machine
		}
	}

	return true
}

// localZone returns this machine's time zone, and where it found the zone.
func localZone() (zone, why string) {
	zone, why = machineZone()
	if plain := strings.TrimPrefix(zone, "Etc/"); plain == "UTC" || plain == "UCT" || plain == "Universal" ||
		plain == "Zulu" {
		zone = "UTC"
	}
	return zone, why
}

func machineZone() (zone, why string) {
	if tz := strings.TrimPrefix(os.Getenv("TZ"), ":"); tz != "" {
		if _, err := job.LoadZone(tz); err == nil {
			return tz, "set by TZ"
		}
	}
	if to, err := filepath.EvalSymlinks("/etc/localtime"); err == nil {
		if _, name, found := strings.Cut(to, "zoneinfo/"); found {
			if _, err := job.LoadZone(name); err == nil {
				return name, "this machine's time zone"
			}
		}
	}

	if text, err := os.ReadFile("/etc/timezone"); err == nil {
		if name := strings.TrimSpace(string(text)); name != "" {
			if _, err := job.LoadZone(name); err == nil {
				return name, "this machine's time zone"
			}
		}
	}

	return "UTC", "because this machine has no time zone setting"
}

// importLines creates or updates the jobs of all lines, or of none.
func (r *remote) importLines(cmd *cobra.Command, f *importFlags, lines []imported, report *importReport) error {
	if len(report.Refused) == 0 {
		if err := r.keepNames(cmd.Context(), f.app, lines, report); err != nil {
			return err
		}
	}

	// Convert the lines to jobs.
	set := &manifest.Set{}
	now := time.Now()
	for i := range lines {
		l := &lines[i]
		s := l.Job
		s.Defaults(now)
		var err error
		if l.object, err = s.Minimal(); err != nil {
			return err
		}
		if l.outlook, err = previewOf(&s, now, 3); err != nil {
			return err
		}

		if err := set.Add("jobs", manifest.Place{File: l.file, Line: l.Line}, l.object); err != nil {
			return err
		}

		report.Jobs = append(report.Jobs, importedJob{
			File: l.file, Line: l.Line, Text: l.Text, Words: l.outlook.Words, Next: l.outlook.Next, Notes: l.Notes,
			Job: l.object,
		})
	}

	// Refuse the import if any line cannot become a job.
	if len(report.Refused) > 0 {
		if err := r.showImport(lines, report, f.dryRun); err != nil {
			return err
		}
		return refusedLines(report)
	}
	if len(lines) == 0 {
		return &exitError{code: exitRefused, err: errors.New("nothing to import: the crontab has no lines with jobs")}
	}

	// Compare the lines with the existing jobs in a dry run.
	would, _, err := r.apply(cmd.Context(), set, map[string]any{"dry_run": true})
	switch {
	case err != nil && f.dryRun && errors.Is(err, connectionRefused):
		r.notef("existing jobs were not checked: %v\n", err)
	case err != nil:
		return err
	default:
		if err := f.conflicts(lines, would); err != nil {
			return err
		}
		for i := range min(len(lines), len(would.Jobs)) {
			lines[i].action = would.Jobs[i].Action
			report.Jobs[i].Does = lines[i].action
		}
	}

	if f.dryRun {
		return r.showImport(lines, report, true)
	}

	// Import.
	done, raw, err := r.applyAt(cmd, lines, would)
	if err != nil {
		return err
	}

	return r.showImported(lines, report, done, raw)
}

// refusedLines returns the error for lines that cannot become jobs.
func refusedLines(report *importReport) error {
	text := "nothing was imported; these lines cannot be imported:"
	var skip []string
	leave := func(n *importedNote) {
		switch {
		case n.Line > 0 && report.files > 1:
			skip = append(skip, fmt.Sprintf("%s:%d", n.File, n.Line))
		case n.Line > 0:
			skip = append(skip, fmt.Sprint(n.Line))
		}
	}

	for i := range report.Skipped { // the hint must repeat the lines already skipped
		leave(&report.Skipped[i])
	}

	for i := range report.Refused {
		text += "\n  " + plain(report.Refused[i].String())
		leave(&report.Refused[i])
	}

	err := error(&exitError{code: exitRefused, err: errors.New(text)})
	if len(skip) == len(report.Skipped)+len(report.Refused) { // otherwise a whole file is wrong
		return withHint(err, "to import the rest:  --skip %s", quote(strings.Join(skip, ",")))
	}

	return err
}

// conflicts returns an error if the import would replace jobs that were not imported from these
// crontabs.
func (f *importFlags) conflicts(lines []imported, would view.Apply) error {
	if f.replace {
		return nil
	}

	var text string
	for i := range would.Jobs {
		o := would.Jobs[i]
		if o.Action == "updated" && !lines[i].isMine(o) {
			at := manifest.Place{File: lines[i].file, Line: lines[i].Line}
			text += fmt.Sprintf("\n  %s: the job %s exists and was not imported from this crontab",
				plain(at.String()), plain(appliedName(o, "")))
		}
	}

	if text == "" {
		return nil
	}
	return &exitError{
		code: exitRefused, err: errors.New("nothing was imported; these jobs exist already:" + text),
		hint: "to replace them:             --replace\nto import into another app:  --app NAME",
	}
}

// applyAt applies the lines if the jobs still have the versions that the dry run saw.
func (r *remote) applyAt(
	cmd *cobra.Command, lines []imported, would view.Apply,
) (view.Apply, json.RawMessage, error) {
	set := &manifest.Set{}
	for i := range lines {
		version := int64(0)
		if i < len(would.Jobs) {
			version = would.Jobs[i].Version
		}
		object := append(slices.Clone(lines[i].object[:len(lines[i].object)-1]),
			fmt.Sprintf(`,"version":%d}`, version)...)
		if err := set.Add("jobs", manifest.Place{File: lines[i].file, Line: lines[i].Line}, object); err != nil {
			return view.Apply{}, nil, err
		}
	}

	done, raw, err := r.apply(cmd.Context(), set, nil)
	if isStatus(err, http.StatusConflict) {
		err = withHint(err, "the same jobs were changed meanwhile; run the command again")
	}
	return done, raw, err
}

// showImport prints a preview of the import.
func (r *remote) showImport(lines []imported, report *importReport, dry bool) error {
	switch r.format {
	case "json", "yaml":
		return r.object(r.console, report, "", nil)
	case "name":
		for _, l := range lines {
			r.printf("%s\n", l.Job.App+"/"+l.Job.Name)
		}
		return nil
	case "manifest":
		o := &manifest.Objects{}
		for _, l := range lines {
			o.Jobs = append(o.Jobs, l.object)
		}
		r.noteAll(report)
		return manifest.WriteYAML(r.out, o)
	}

	for i := range lines {
		r.showLine(&lines[i])
	}

	r.noteAll(report)
	if dry && len(report.Refused) == 0 {
		r.notef("dry run: %s would be imported; to import, leave out --dry-run\n", counted(len(lines), "job"))
	}

	return nil
}

// showLine prints a line and its job.
func (r *remote) showLine(l *imported) {
	paint := painter(colourful(r.out))
	s := &l.Job
	head := paint(faint, plain(manifest.Place{File: l.file, Line: l.Line}.String())) + "  " +
		paint(bold, plain(s.App+"/"+s.Name))
	if l.action != "" {
		head += "  " + paint(actionSigns[l.action].colour, plain(l.action))
	}

	r.printf("%s\n", head)
	add := func(name, value string, c colour) {
		if value != "" {
			r.printf("    %-8s %s\n", name, paint(c, plain(value)))
		}
	}

	add("about", s.Description, faint)
	add("due", l.outlook.Words, "")
	var next []string
	for _, d := range l.outlook.Next {
		next = append(next, whole(&d.Due, d.Due.Location())+strings.TrimRight(" "+string(d.Mark), " "))
	}

	add("next", strings.Join(next, ", "), "")
	add("command", s.Command, "")
	add("as", s.User, "")
	add("on", s.Selector, "")
	add("timeout", lengthOf(s.Timeout), "")
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		if key != "crontab" { // every imported job has it
			add("label", key+"="+s.Labels[key], "")
		}
	}
	if s.Stdin != "" {
		add("reads", s.Stdin, "")
	}

	for _, n := range l.Notes {
		add("note", n.Message, yellow)
	}
}

// noteAll prints the notes that do not belong to a job.
func (r *remote) noteAll(report *importReport) {
	for i := range report.Notes {
		r.notef("note: %s\n", plain(report.Notes[i].String()))
	}
	for i := range report.Skipped {
		r.notef("note: %s\n", plain(report.Skipped[i].String()))
	}
}

// showImported prints the result of the import.
func (r *remote) showImported(lines []imported, report *importReport, done view.Apply, raw json.RawMessage) error {
	if r.format != "table" {
		if r.format == "name" {
			for _, l := range lines {
				r.printf("%s\n", l.Job.App+"/"+l.Job.Name)
			}
			return nil
		}
		return r.object(r.console, raw, "", nil)
	}

	r.noteAll(report)
	for i := range lines {
		l := &lines[i]
		action := "unchanged"
		if i < len(done.Jobs) {
			action = string(done.Jobs[i].Action)
		}
		r.printf("%-9s  %s  %s\n", action, plain(l.Job.App+"/"+l.Job.Name),
			painter(colourful(r.out))(faint, plain(l.outlook.Words)))
		for _, n := range l.Notes {
			r.notef("note: %s: %s\n", plain(manifest.Place{File: l.file, Line: l.Line}.String()), plain(n.Message))
		}
	}

	r.notef("%s; now remove the lines from the crontab, or cron runs them as well\n", counted(len(lines), "job"))
	return nil
}
