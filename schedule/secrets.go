package schedule

import (
	"context"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// referToSecrets writes down which secrets a job names. Those that only the cluster can have must be there and for the
// job's app; they stay while the job's row is being written, because a delete looks for the reference under the lock of
// the secret's row. A name that a node may know by itself is written down as well: the cluster may get such a secret.
func referToSecrets(tx *sql.Tx, id int64, from, to *job.Spec) error {
	were, names := job.SecretNames(from.SecretUses()), job.SecretNames(to.SecretUses())
	if slices.Equal(were, names) && (from.App == to.App || len(names) == 0) && !unread(from) {
		return nil
	}
	exist, err := tx.ShareSecrets([]string{to.App}, names)
	if err != nil {
		return err
	}
	if p := to.MissingSecrets(exist); p != nil {
		return p
	}
	refs := make([]string, len(names))
	for i, n := range names {
		refs[i] = string(n)
	}
	return tx.SetRefs(sql.RefSecret, id, refs)
}

// lookForSecrets returns which of the secrets that jobs name exist. They are looked at again when the jobs are written.
func (a *applying) lookForSecrets(ctx context.Context) (map[job.AppSecret]bool, error) {
	var uses []job.SecretUse
	var apps []string
	for i := range a.want.Jobs {
		uses = append(uses, a.want.Jobs[i].SecretUses()...)
		apps = append(apps, a.want.Jobs[i].App)
	}
	slices.Sort(apps)
	return a.DB.SecretsThere(ctx, slices.Compact(apps), job.SecretNames(uses))
}
