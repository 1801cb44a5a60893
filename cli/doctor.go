package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go-crontab/api"
	"go-crontab/api/view"
	"go-crontab/internal/doctor"
	"go-crontab/sql"
	"go-crontab/sql/read"

	"github.com/spf13/cobra"
)

func doctorCommand(c *console) *cobra.Command {
	var (
		dsn                 string
		direct, strict, all bool
	)

	cmd := &cobra.Command{
		Use: "doctor", Short: "Find problems of the cluster, and how to fix them", Args: nothing,
		Long: `Find problems of the cluster, and how to fix them. The doctor checks the settings of MySQL,
privileges, the schema, nodes, the machine of a node, jobs, and the size of the history. Each
finding says what is wrong, why it matters, and how to fix it. The doctor changes nothing and takes
no locks.

By default a node runs the checks, including those of its own machine. With --direct or --dsn, this
command checks the database directly; that also works when no node is alive.

Exit code 0: no errors; there may be notices and warnings. Exit code 1: there are errors (with
--strict also for warnings), or the checks could not run.`,
		Example: `  go-crontab doctor
  go-crontab doctor --strict -o json | jq -r '.findings[].seen'
  GOCRONTAB_DSN_FILE=/run/secrets/dsn go-crontab doctor --direct`,
	}

	r := newRemote(c, cmd)
	flags := cmd.Flags()
	flags.BoolVar(&direct, "direct", false, "check the database of GOCRONTAB_DSN directly, without a node")
	flags.BoolVar(&strict, "strict", false, "exit with 1 for warnings, too")
	flags.BoolVar(&all, "all", false, "list passed checks, too")
	dsnVar(flags, &dsn)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v, raw, err := r.diagnose(cmd, dsn, direct)
		if err != nil {
			return err
		}

		var names []string
		for _, f := range v.Findings {
			names = append(names, f.Check)
		}

		err = r.object(c, raw, strings.Join(names, "\n"), func() error { r.printDiagnosis(&v, all); return nil })
		if err != nil {
			return err
		}

		if v.Worst == view.Severity(doctor.Error) || strict && v.Worst == view.Severity(doctor.Warning) {
			return fmt.Errorf("%s", tallied(&v))
		}
		return nil
	}

	return cmd
}

// diagnose runs the checks on a node, or directly on the database.
func (r *remote) diagnose(cmd *cobra.Command, dsn string, direct bool) (v view.Doctor, raw json.RawMessage, err error) {
	if !direct && dsn == "" {
		v, raw, err = get[view.Doctor](cmd.Context(), r, "/api/v1/doctor", nil)
		if err != nil && codeOf(err) == exitFailed {
			err = withHint(err,
				"if no node is alive:  GOCRONTAB_DSN='user:password@tcp(host:3306)/schema' %s doctor --direct",
				program())
		}
		return v, raw, err
	}
	if err := takeEnv(cmd.Flags(), nil, []string{"dsn"}); err != nil {
		return v, nil, err
	}

	dsn, _ = cmd.Flags().GetString("dsn")
	if err := checkDSN(dsn); err != nil {
		return v, nil, err
	}

	db, err := sql.Open(dsn,
		sql.Timeouts{Dial: 5 * time.Second, Read: time.Minute, LockWait: 2 * time.Second, Idle: 2 * time.Minute}, 2)
	if err != nil {
		return v, nil, err
	}
	defer db.Close()

	if v, err = examine(cmd.Context(), db); err != nil {
		return v, nil, withHint(err, "check that MySQL runs, and that the DSN is right")
	}

	raw, err = json.Marshal(struct {
		view.Doctor
		Node string `json:"node,omitempty"` // empty: this process made the checks, not a node
	}{Doctor: v})
	return v, raw, err
}

// examine runs the checks of GET /api/v1/doctor in this process.
func examine(ctx context.Context, db *sql.DB) (v view.Doctor, err error) {
	found, err := doctor.Examine(ctx, doctor.Patient{DB: &read.DB{DB: db}})
	if err != nil {
		return v, err
	}

	v = *api.ViewOfReport(found)
	v.Version = readVersion().Version
	return v, nil
}

// printDiagnosis prints the findings for people.
func (r *remote) printDiagnosis(v *view.Doctor, all bool) {
	paint := painter(colourful(r.out))
	colours := map[doctor.Severity]colour{
		doctor.Error: red, doctor.Warning: yellow, doctor.Notice: blue, doctor.OK: green, doctor.Unknown: purple,
	}
	tint := func(s view.Severity) colour { return colours[doctor.Severity(s)] }

	for i := range v.Findings {
		f := v.Findings[i]
		r.printf("%s  %s  %s\n", paint(tint(f.Severity), string(f.Severity)), paint(bold, plain(f.Seen)),
			paint(faint, "("+plain(f.Check)+")"))
		r.printf("    why  %s\n", plain(f.Why))
		r.printf("    fix  %s\n", plain(f.Fix))
		for _, s := range f.SQL {
			r.printf("    sql  %s\n", plain(s)+";")
		}

		for _, s := range f.Commands {
			r.printf("    run  %s\n", plain(s))
		}

		if len(f.Jobs) > 1 {
			var names []string
			for _, j := range f.Jobs {
				names = append(names, plain(j.App+"/"+j.Name))
			}
			r.printf("    jobs %s\n", strings.Join(names, ", "))
		}

		r.printf("\n")
	}

	skipped := 0
	for _, c := range v.Checks {
		if c.Skipped != "" {
			skipped++
		}
		if all && doctor.Severity(c.Severity) == doctor.OK {
			r.printf("%s  %s  %s\n", paint(tint(c.Severity), "ok"), plain(c.About),
				paint(faint, "("+plain(c.ID)+")"))
		} else if c.Skipped != "" && (all || doctor.Area(c.Area) != doctor.Host) {
			r.printf("%s  %s: %s  %s\n", paint(tint(c.Severity), "skipped"), plain(c.About), plain(c.Skipped),
				paint(faint, "("+plain(c.ID)+")"))
		}
	}

	where := "checked directly"
	if v.Node != "" {
		where = "checked by " + plain(v.Node)
	}

	r.notef("%s; %d checks, %d skipped; %s, %s\n", tallied(v), len(v.Checks), skipped, plain(v.Server),
		where)
}

// tallied counts the findings by severity.
func tallied(v *view.Doctor) string {
	n := map[doctor.Severity]int{}
	for _, f := range v.Findings {
		n[doctor.Severity(f.Severity)]++
	}

	var out []string
	for _, s := range []doctor.Severity{doctor.Error, doctor.Warning, doctor.Notice} {
		if n[s] == 1 {
			out = append(out, fmt.Sprintf("1 %s", s))
		} else if n[s] > 1 {
			out = append(out, fmt.Sprintf("%d %ss", n[s], s))
		}
	}

	if out == nil {
		return "no problems found"
	}
	return strings.Join(out, ", ")
}
