//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go-crontab/internal/auth"
	"go-crontab/internal/secret"
	"go-crontab/job"
	"go-crontab/sql"
)

// devTokenName is the name that audit lines give to dev's token.
const devTokenName = "dev"

// tokenFile holds the token of dev's admin.
func (d *dev) tokenFile() string { return filepath.Join(d.data, "token") }

// takeToken reads the token of an earlier start, or creates one. If we die after the token's row is
// committed and before its file is written, the token is lost. The next start replaces it.
func (d *dev) takeToken(ctx context.Context, db *sql.DB) error {
	issuer := auth.Issuer{DB: db}
	b, err := os.ReadFile(d.tokenFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	d.token = strings.TrimSpace(string(b))
	if living, err := issuer.Living(ctx, d.token); err != nil || living {
		return errors.Join(err, os.Chmod(d.tokenFile(), 0o600))
	}

	ctx = job.WithActor(ctx, job.Actor{Who: devTokenName, Origin: "program"})
	if d.token, err = issuer.Replace(ctx, auth.Spec{
		Name: devTokenName, Grant: auth.Grant{Role: auth.Admin},
	}); err != nil {
		return fmt.Errorf("token: %w", err)
	}
	return writeSecret(d.tokenFile(), d.token)
}

// link makes the link by which commands find the token for this node.
func (m *member) link() {
	if err := linkToken(m.url(), m.tokenFile()); err != nil {
		m.say("commands cannot find the token (%v): export GOCRONTAB_TOKEN_FILE=%s", err,
			quote(m.tokenFile()))
	}
}

// unlink removes the link. The port is free now. Another program that uses the port must not
// receive the token.
func (m *member) unlink() { unlinkToken(m.url(), m.tokenFile()) }

// secretKeyFile holds the key of dev's secrets.
func (d *dev) secretKeyFile() string { return filepath.Join(d.data, "secret.key") }

// takeSecretKey creates the key unless an earlier start has created it. All nodes share the key.
func (d *dev) takeSecretKey() error {
	if _, err := os.Stat(d.secretKeyFile()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return writeSecret(d.secretKeyFile(), secret.NewKey())
}
