package execute

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go-crontab/job"
)

// Secrets looks up what definitions only name.
type Secrets interface {
	Secret(name job.Secret) ([]byte, error)
}

// NodeSecrets are the secrets that the node's operator laid down: the file of that name in Dir, else the variable
// GOCRONTAB_SECRET_NAME, with the name in capitals and _ for . and -. They are read anew each time, so a changed file
// counts at once. Commands do not get the variables.
type NodeSecrets struct {
	Dir string // "": no files
}

// secretEnv begins the names of the variables. Without it a job could have any variable of the daemon's used.
const secretEnv = reserved + "SECRET_"

// maxSecret bounds a secret, in bytes.
const maxSecret = 64 << 10

// Secret returns a secret without the line break at its end. An empty one is an error: it would sign for everybody.
func (n NodeSecrets) Secret(name job.Secret) ([]byte, error) {
	if err := name.Check(); err != nil {
		return nil, err
	}
	variable := secretEnv + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(string(name)))
	if variable == secretEnv+"KEY" || variable == secretEnv+"KEY_FILE" { // that of the keys which secrets are sealed with
		variable = ""
	}
	value, err := n.file(name)
	if errors.Is(err, fs.ErrNotExist) {
		if variable == "" {
			return nil, fmt.Errorf("secret %s: the cluster keeps none of this name, and this node has no such file in its --secrets-dir", name)
		}
		if value = []byte(os.Getenv(variable)); len(value) == 0 {
			return nil, fmt.Errorf("secret %s: the cluster keeps none of this name, and this node has neither the variable %s nor such a file in its --secrets-dir", name, variable)
		}
		err = nil
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("secret %s: %w", name, err)
	case len(value) == 0:
		return nil, fmt.Errorf("secret %s: its file is empty", name)
	case len(value) > maxSecret:
		return nil, fmt.Errorf("secret %s: has %d bytes, at most %d are taken", name, len(value), maxSecret)
	}
	return value, nil
}

func (n NodeSecrets) file(name job.Secret) ([]byte, error) {
	if n.Dir == "" {
		return nil, fs.ErrNotExist
	}
	value, err := os.ReadFile(filepath.Join(n.Dir, string(name)))
	return []byte(strings.TrimRight(string(value), "\r\n")), err
}
