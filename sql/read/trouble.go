package read

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// Trouble is a problem of the cluster that stops no run but needs a person.
type Trouble struct {
	Event job.AlertEvent // the kind of trouble
	About string         // distinguishes the troubles of one kind
	Node  string         // "": it concerns no single node
	Text  string
}

// ExpirySoon is how long before its expiry a token or a certificate becomes a trouble.
const ExpirySoon = 14 * 24 * time.Hour

// longLived is the shortest lifetime of a token whose expiry is a trouble. Somebody must replace
// such a token. Tokens with a shorter life are meant for a single purpose.
const longLived = 30 * 24 * time.Hour

// Troubles lists the troubles of the cluster at an instant.
func (db *DB) Troubles(ctx context.Context, now job.Micros) ([]Trouble, error) {
	sessions, err := db.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	expiry, err := db.SessionExpiry(ctx)
	if err != nil {
		return nil, err
	}

	var out []Trouble
	shared := SharedNames(sessions, now, expiry)
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		out = append(out, Trouble{job.AlertDuplicateNames, name, name, fmt.Sprintf("%d live nodes are named %s: %s",
			len(shared[name]), name, strings.Join(shared[name], "; "))})
	}

	for _, look := range []func(context.Context, job.Micros) ([]Trouble, error){
		db.refusedFolders, db.expiringTokens, db.nodeTroubles, db.oldBackup,
	} {
		found, err := look(ctx, now)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// SharedNames returns the names that several live nodes have, and the addresses of these nodes. A
// node may take the name of a session that has missed three beats. So a session that has been
// silent for longer is left out: its node was killed and restarted.
func SharedNames(sessions []sql.SessionRow, now job.Micros, expiry time.Duration) map[string][]string {
	const beats = 3
	where := map[string][]string{}
	for _, s := range sessions {
		if s.Node != "" && now.Sub(s.BeatAt) < beats*expiry/10 {
			where[s.Node] = append(where[s.Node], fmt.Sprintf("%s, pid %d", cmp.Or(s.Address, "no address"), s.PID))
		}
	}
	maps.DeleteFunc(where, func(_ string, at []string) bool { return len(at) < 2 })
	return where
}

// refusedFolders lists the folders of job files that live nodes cannot apply.
func (db *DB) refusedFolders(ctx context.Context, _ job.Micros) ([]Trouble, error) {
	scan := func(rows *sql.Rows) (t Trouble, err error) {
		var folder, why string
		err = rows.Scan(&folder, &t.Node, &why)
		t.Event, t.About = job.AlertFolderRefused, t.Node+" "+folder
		why = strings.Join(strings.Fields(why), " ") // it has a line for each mistake
		t.Text = fmt.Sprintf("the node %s cannot apply the folder %s: %s", t.Node, folder, why)
		return t, err
	}
	return sql.Select(db.Reader(ctx), "list refused folders", scan, `
		SELECT f.name, n.node, n.error
		FROM folder_node n
		JOIN folder f ON f.id = n.folder_id
		WHERE n.state = ? AND EXISTS (SELECT 1 FROM session s WHERE s.node = n.node)
		ORDER BY f.name, n.node
		LIMIT 100`, string(job.FolderRefused))
}

// expiringTokens lists long-lived tokens that expire soon. It also lists those that have expired
// and are not revoked: nobody can use them, but nobody has replaced them either.
func (db *DB) expiringTokens(ctx context.Context, now job.Micros) ([]Trouble, error) {
	scan := func(rows *sql.Rows) (t Trouble, err error) {
		var (
			name string
			end  job.Micros
		)
		err = rows.Scan(&name, &end)
		t.Event, t.About = job.AlertExpiring, "token "+name
		t.Text = fmt.Sprintf("the token %s %s at %s", name, expires(end, now), end.Time().Format(time.RFC3339))
		return t, err
	}
	return sql.Select(db.Reader(ctx), "list tokens that expire soon", scan, `
		SELECT name, expires
		FROM api_token
		WHERE living = 1 AND expires < ? AND expires - created > ?
		ORDER BY expires DESC
		LIMIT 100`, int64(now.Add(ExpirySoon)), longLived.Microseconds())
}

// expires returns the verb for an expiry that is soon, or has passed.
func expires(end, now job.Micros) string {
	if end <= now {
		return "expired"
	}
	return "expires"
}

// nodeTroubles lists the troubles that nodes have noted about themselves, see sql.NodeNote.
func (db *DB) nodeTroubles(ctx context.Context, now job.Micros) ([]Trouble, error) {
	notes, err := db.NodeNotes(ctx)
	var out []Trouble
	for _, n := range notes {
		switch {
		case !n.Alive:
		case n.Expires != 0 && n.Expires < now.Add(ExpirySoon):
			out = append(out, Trouble{job.AlertExpiring, "certificate " + n.Node, n.Node, fmt.Sprintf(
				"the TLS certificate of the node %s %s at %s",
				n.Node, expires(n.Expires, now), n.Expires.Time().Format(time.RFC3339))})
		case n.Error != "":
			out = append(out, Trouble{job.AlertOIDCUnreachable, n.Node, n.Node, fmt.Sprintf(
				"the node %s has not reached the OIDC issuer since %s: %s", n.Node,
				n.Since.Time().Format(time.RFC3339), strings.Join(strings.Fields(n.Error), " "))}) // it may be a page
		}
	}
	return out, err
}

// oldBackup reports a trouble if no new backup was reported in time.
func (db *DB) oldBackup(ctx context.Context, now job.Micros) ([]Trouble, error) {
	b, err := db.LastBackup(ctx)
	if err != nil || b.At == 0 || now <= b.At.Add(b.Within) {
		return nil, err
	}
	return []Trouble{{job.AlertBackupOld, "backup", "", fmt.Sprintf(
		"the last backup was made at %s, and the next one was expected within %s",
		b.At.Time().Format(time.RFC3339), job.Duration(b.Within))}}, nil
}
