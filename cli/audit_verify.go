package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/audit"
	"go-crontab/job"
	"go-crontab/sql"

	"github.com/spf13/cobra"
)

func auditVerifyCommand(c *console) *cobra.Command {
	var (
		dsn, head string
		direct    bool
	)

	cmd := &cobra.Command{
		Use: "verify", Short: "Check that no audit entry was changed or removed", Args: nothing,
		Long: `Check that no audit entry was changed or removed. Every entry has a link in a chain of hashes, and
this command computes all of them again.

The chain alone cannot show that the newest entries were removed, or that an intruder with write
access to both tables computed the chain again. So keep a head outside the database, and pass it
with --head. This command prints a head, each node logs one an hour, and every line of a copy (serve
--audit-log) has one.

Exit code 1: an entry was changed or removed, or the check failed.`,
		Example: `  go-crontab audit verify
  go-crontab audit verify -o json | jq -r .to.head > /mnt/elsewhere/head
  go-crontab audit verify --head "$(cat /mnt/elsewhere/head)"
  GOCRONTAB_DSN_FILE=/run/secrets/dsn go-crontab audit verify --direct`,
	}

	r := newRemote(c, cmd)
	flags := cmd.Flags()
	flags.StringVar(&head, "head", "", "a head that you kept, as SEQ:HASH; the chain must still contain it")
	flags.BoolVar(&direct, "direct", false, "check the database of GOCRONTAB_DSN directly, without a node")
	dsnVar(flags, &dsn)

	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if head != "" {
			if _, err := job.ParseHead(head); err != nil {
				return usageError("--head: %w", err)
			}
		}

		verify := r.verifyByNode
		if direct || dsn != "" {
			verify = verifyDirectly
		}

		all, err := verify(cmd, head)
		if err != nil {
			return err
		}

		raw, err := json.Marshal(all)
		if err != nil {
			return err
		}

		err = r.object(c, json.RawMessage(raw), "", func() error { r.printChain(&all, head); return nil })
		if n := len(all.Faults); err == nil && n > 0 {
			return fmt.Errorf("the audit was changed: %s do not match the chain", counted(n, "link"))
		}

		return err
	}

	return cmd
}

// verifyByNode verifies the chain through a node, part by part.
func (r *remote) verifyByNode(cmd *cobra.Command, head string) (view.AuditChain, error) {
	all := view.AuditChain{Faults: []view.AuditFault{}}
	for q := (url.Values{}); ; q.Set("after", strconv.FormatInt(*all.Next, 10)) {
		q.Del("head")
		part, _, err := get[view.AuditChain](cmd.Context(), r, "/api/v1/audit/chain", q)
		if err != nil {
			return all, err
		}
		addChain(&all, &part)
		if all.Next == nil {
			break
		}
	}

	if head == "" {
		return all, nil
	}

	// Check the head last. It may be newer than the first parts.
	part, _, err := get[view.AuditChain](cmd.Context(), r,
		"/api/v1/audit/chain", url.Values{"head": {head}, "after": {strconv.FormatInt(max(1, lastLink(&all)), 10)}})
	if err == nil {
		addChain(&all, &part)
	}

	return all, err
}

func lastLink(p *view.AuditChain) int64 {
	if p.To == nil {
		return 0
	}
	return p.To.Seq
}

func addChain(p, part *view.AuditChain) {
	if p.From == nil {
		p.From = part.From
	}
	if part.To != nil {
		p.To = part.To
	}
	p.Links, p.Next = p.Links+part.Links, part.Next
	p.Faults = append(p.Faults, part.Faults...)
}

// verifyDirectly verifies the chain in the database itself. It needs no living node.
func verifyDirectly(cmd *cobra.Command, head string) (view.AuditChain, error) {
	all := view.AuditChain{Faults: []view.AuditFault{}}
	if err := takeEnv(cmd.Flags(), nil, []string{"dsn"}); err != nil {
		return all, err
	}

	dsn, _ := cmd.Flags().GetString("dsn")
	if err := checkDSN(dsn); err != nil {
		return all, err
	}

	db, err := sql.Open(dsn,
		sql.Timeouts{Dial: 5 * time.Second, Read: 2 * time.Minute, LockWait: 2 * time.Second, Idle: 3 * time.Minute}, 2)
	if err != nil {
		return all, err
	}
	defer db.Close()

	v, err := audit.VerifyAll(cmd.Context(), db, 0, audit.Kept)
	if err != nil {
		return all, withHint(err, "check that MySQL runs, and that the DSN is right")
	}

	all.Links = v.Links
	if v.Links > 0 {
		all.From, all.To = chainLinkOf(v.From), chainLinkOf(v.To)
	}

	for _, f := range v.Faults {
		all.Faults = append(all.Faults, view.AuditFault{
			Seq: f.Seq, Line: strconv.FormatInt(f.Line, 10), What: f.What,
		})
	}

	if head == "" {
		return all, nil
	}

	kept, err := job.ParseHead(head)
	if err != nil {
		return all, err
	}

	what, err := audit.CheckHead(cmd.Context(), db, kept, audit.Kept)
	if what != "" {
		all.Faults = append(all.Faults, view.AuditFault{Seq: kept.Seq, What: what})
	}

	return all, err
}

func chainLinkOf(l job.Link) *view.AuditLink {
	return &view.AuditLink{Seq: l.Seq, At: l.At.Time(), Head: l.Head()}
}

// printChain prints the result for people.
func (r *remote) printChain(p *view.AuditChain, head string) {
	for _, f := range p.Faults {
		r.printf("link %d: %s\n", f.Seq, plain(f.What))
	}

	if p.Links == 0 {
		r.printf("The audit has no links yet.\n")
		return
	}

	at := func(l *view.AuditLink) string { return whole(&l.At, r.zone()) }
	r.printf("Verified %d links, from %d (%s) to %d (%s).\n", p.Links, p.From.Seq, at(p.From), p.To.Seq, at(p.To))
	if head != "" && len(p.Faults) == 0 {
		r.printf("The chain contains the head that you kept.\n")
	}

	r.printf("head %s\n", p.To.Head)
	if p.From.Seq > 1 {
		r.notef("Older entries were removed by age; the chain now begins at link %d.\n", p.From.Seq)
	}
}
