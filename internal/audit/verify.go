package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// Fault is a place where the audit differs from the chain.
type Fault struct {
	Seq  int64 // zero: the audit line is not chained
	Line int64 // id of the audit line
	What string
}

// Verified is the result of verifying a part of the chain.
type Verified struct {
	From, To job.Link // first and last verified link; zero: none
	Links    int
	Next     int64 // number after which to continue; zero: the end was reached
	Faults   []Fault
}

const (
	// maxFaults bounds the faults that one call returns. For further faults, continue after the
	// last one.
	maxFaults = 50
	// Kept is how long audit lines are kept. A program that embeds a node may choose another time.
	Kept = 400 * 24 * time.Hour
)

// errEnough ends reading the chain early.
var errEnough = errors.New("enough")

// Verify checks up to most links after a number, and stops early once patience has passed. kept is
// how long lines are kept. If the first link is older than that, its line may be missing.
//
// After a fault, Verify continues from the stored hash, so one changed line is only one fault.
func Verify(ctx context.Context, db *sql.DB, after int64, most int, kept, patience time.Duration) (Verified, error) {
	for {
		base, err := firstLink(db.Reader(ctx))
		if err != nil {
			return Verified{}, err
		}
		v, err := verify(ctx, db, base, after, most, kept, patience)
		if err != nil || len(v.Faults) == 0 {
			return v, err
		}

		now, err := firstLink(db.Reader(ctx))
		if err != nil || now.Seq == base.Seq {
			return v, err
		}
		// During the check, old lines were removed, and they now look missing. So verify again.
	}
}

// verify is Verify with a known oldest link: base.
func verify(
	ctx context.Context, db *sql.DB, base job.Link, after int64, most int, kept, patience time.Duration,
) (v Verified, err error) {
	now, err := db.Now(ctx)
	if err != nil {
		return v, err
	}
	before, err := linkUpTo(db.Reader(ctx), after) // the zero Link at the start of the chain
	if err != nil {
		return v, err
	}

	began, old := time.Now(), now.Add(-kept)
	err = readChain(db.Reader(ctx), before.Seq, most+1, func(r *chainRow) error {
		if v.Links == most || len(v.Faults) >= maxFaults || v.Links > 0 && time.Since(began) > patience {
			v.Next = v.To.Seq
			return errEnough
		}
		v.Faults = append(v.Faults, judge(before, r, base.Seq, old)...)
		if v.Links == 0 {
			v.From = r.Link
		}

		v.Links, v.To, before = v.Links+1, r.Link, r.Link
		return nil
	})
	if errors.Is(err, errEnough) {
		return v, nil
	}
	if err != nil {
		return v, err
	}

	// At the end of the chain, look for strays.
	head, err := Head(db.Reader(ctx))
	if err != nil {
		return v, err
	}
	if v.To.Seq > 0 && head.Seq > v.To.Seq {
		v.Next = v.To.Seq // the chain has grown meanwhile, or continues after a gap
		return v, nil
	}

	strays, err := strayLinks(ctx, db, head)
	v.Faults = append(v.Faults, strays...)
	return v, err
}

// strayLinks returns a fault for each link that is not part of the chain.
func strayLinks(ctx context.Context, db *sql.DB, head job.Link) (out []Fault, err error) {
	links, err := readStrays(db.Reader(ctx), head.Seq, maxFaults)
	for _, l := range links {
		what := fmt.Sprintf("no node wrote this link, for audit line %d: the chain ends at link %d and "+
			"continues there. A user who may delete from audit_chain can remove it: "+
			"DELETE FROM audit_chain WHERE seq = %d", l.Line, head.Seq, l.Seq)
		out = append(out, Fault{Seq: l.Seq, Line: l.Line, What: what})
	}
	return out, err
}

// judge returns the faults of a link and its line. first is the number of the oldest link. Lines
// written before old may have been removed from the start of the chain. judge takes the time of
// writing from the hash, because someone with write access to the table could make the link itself
// look old.
func judge(before job.Link, r *chainRow, first int64, old job.Micros) []Fault {
	fault := func(format string, args ...any) Fault {
		return Fault{Seq: r.Seq, Line: r.Line, What: fmt.Sprintf(format, args...)}
	}
	var out []Fault

	switch isFirst := r.Seq == first; {
	case isFirst && r.Gone && r.Written() < old:
		return nil // this link is the base for the rest of the chain
	case isFirst && r.Seq != 1:
		out = append(out, fault("the links before it are missing, and its line was not old enough to be removed"))
		before = job.Link{Seq: r.Seq - 1}
	case r.Seq != before.Seq+1:
		out = append(out, fault("the links from %d to %d are missing", before.Seq+1, r.Seq-1))
	}

	switch want := (job.Link{Seq: r.Seq - 1, Hash: before.Hash}).Next(&r.Entry); {
	case r.Gone:
		out = append(out, fault("audit line %d is missing", r.Line))
	case out == nil && (want.Hash != r.Hash || want.At != r.At):
		out = append(out, fault("audit line %d, or its link, was changed after it was written", r.Line))
	}
	return out
}

// VerifyAll verifies the part of the chain after a number, up to the end.
func VerifyAll(ctx context.Context, db *sql.DB, after int64, kept time.Duration) (all Verified, err error) {
	for {
		v, err := Verify(ctx, db, after, 10_000, kept, time.Minute)
		if err != nil {
			return all, err
		}

		all.add(v)
		if v.Next == 0 || len(all.Faults) >= maxFaults {
			return all, nil
		}
		after = v.Next
	}
}

// add appends the result for the next part of the chain.
func (v *Verified) add(more Verified) {
	if v.Links == 0 {
		v.From = more.From
	}
	if more.Links > 0 {
		v.To = more.To
	}
	v.Links, v.Next = v.Links+more.Links, more.Next
	v.Faults = slices.Concat(v.Faults, more.Faults)
}

// CheckHead compares the chain with a head that was stored elsewhere. It returns a description of
// the fault; "": there is no fault. age is how long lines are kept.
func CheckHead(ctx context.Context, db *sql.DB, kept job.Link, age time.Duration) (string, error) {
	l, err := linkOf(db.Reader(ctx), kept.Seq)
	if err != nil {
		return "", err
	}
	if l.Seq != 0 {
		if l.Hash != kept.Hash {
			return fmt.Sprintf("link %d has the hash %x, and the stored head has %x: the chain was computed again, "+
				"or the database was restored", l.Seq, l.Hash, kept.Hash), nil
		}
		return "", nil
	}

	head, err := Head(db.Reader(ctx))
	if err != nil {
		return "", err
	}
	base, err := firstLink(db.Reader(ctx))
	if err != nil {
		return "", err
	}
	now, err := db.Now(ctx)

	switch {
	case err != nil:
		return "", err
	case kept.Seq > head.Seq:
		return fmt.Sprintf("the chain ends at link %d, and the stored head is link %d: the newest lines were removed, "+
			"or the database was restored", head.Seq, kept.Seq), nil
	case kept.Seq < base.Seq && kept.Written() >= now.Add(-age):
		return fmt.Sprintf("link %d is missing, the chain begins at link %d, and its line from %s was not old enough "+
			"to be removed", kept.Seq, base.Seq, kept.Written()), nil
	case kept.Seq < base.Seq:
		return fmt.Sprintf("link %d was removed with old lines, the chain begins at link %d; use a newer head",
			kept.Seq, base.Seq), nil
	}
	return fmt.Sprintf("link %d is missing", kept.Seq), nil
}
