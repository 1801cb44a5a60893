package execute

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go-crontab/job"
)

// Secrets looks up what definitions only name.
type Secrets interface {
	// Secret returns a secret for a job of an app.
	Secret(app string, name job.Secret) ([]byte, error)
}

// NodeSecrets are the node's own secrets, which its operator grants to apps: the file APP/NAME in Dir, else the
// variable GOCRONTAB_SECRET_NAME, with the name in capitals and _ for . and -, if Grants has the app. They are read
// each time, so a changed file counts at once. Commands do not get the variables.
type NodeSecrets struct {
	Dir    string // "": no files
	Grants Grants
}

// everyApp stands for all apps, as a folder and in grants.
const everyApp = "*"

// secretEnv begins the names of the variables. Without it a job could have any variable of the node's used.
const secretEnv = reserved + "SECRET_"

// maxSecret bounds a secret, in bytes.
const maxSecret = 64 << 10

// Secret returns a secret without the line break at its end. An empty one is an error: it would sign for everybody.
func (n NodeSecrets) Secret(app string, name job.Secret) ([]byte, error) {
	if err := name.Check(); err != nil {
		return nil, err
	}

	value, err := n.file(app, name)
	if errors.Is(err, fs.ErrNotExist) {
		if value = n.variable(app, name); len(value) == 0 {
			return nil, missing(app, name)
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

// missing is the same error whether or not other apps have such a secret.
func missing(app string, name job.Secret) error {
	var ways []string
	if isFolder(app) {
		ways = append(ways, fmt.Sprintf("the file %s in its --secrets-dir", filepath.Join(app, string(name))))
	}
	if key := grantKey(string(name)); !ofKeys(key) {
		grant := app
		if strings.ContainsAny(app, grantMarks) {
			grant = everyApp
		}
		ways = append(ways, fmt.Sprintf("the variable %s with --grant-secret '%s=%s'", secretEnv+key, key, grant))
	}
	if ways == nil {
		ways = []string{fmt.Sprintf("the file %s in its --secrets-dir", filepath.Join(everyApp, string(name)))}
	}
	return fmt.Errorf("secret %s: the cluster keeps none that jobs of the app %q may use, and this node grants that app none; give the node %s",
		name, app, strings.Join(ways, " or "))
}

// file reads the app's file, or else that of all apps.
func (n NodeSecrets) file(app string, name job.Secret) ([]byte, error) {
	if n.Dir == "" {
		return nil, fs.ErrNotExist
	}

	for _, folder := range []string{app, everyApp} {
		if !isFolder(folder) {
			continue
		}
		value, err := os.ReadFile(filepath.Join(n.Dir, folder, string(name)))
		if !errors.Is(err, fs.ErrNotExist) {
			return []byte(strings.TrimRight(string(value), "\r\n")), err
		}
	}
	return nil, fs.ErrNotExist
}

// isFolder reports whether the folder of an app may have the app's name: it must not lead to another place.
func isFolder(app string) bool {
	return app != "" && !strings.HasPrefix(app, ".") && !strings.ContainsAny(app, `/\`+"\x00")
}

func (n NodeSecrets) variable(app string, name job.Secret) []byte {
	key := grantKey(string(name))
	if apps := n.Grants[key]; ofKeys(key) || !slices.Contains(apps, app) && !slices.Contains(apps, everyApp) {
		return nil
	}
	return []byte(os.Getenv(secretEnv + key))
}

// ofKeys reports whether a variable holds keys that seal the cluster's secrets.
func ofKeys(key string) bool { return key == "KEY" || key == "KEY_FILE" }

// Grants say which apps may use the node's variables, by the name behind GOCRONTAB_SECRET_.
type Grants map[string][]string

// grantMarks separate the parts of a grant, and of a list of them.
const grantMarks = "=|,"

// grantKey is the name of a secret as its variable has it.
func grantKey(name string) string {
	return strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}

// ParseGrants reads grants such as SHOP_HOOK=shop|billing and HOOK=*. A grant of a variable that the node does not have
// is an error.
func ParseGrants(texts []string) (Grants, error) {
	grants := Grants{}
	for _, text := range texts {
		name, apps, _ := strings.Cut(text, "=")
		if err := job.Secret(name).Check(); err != nil || apps == "" || slices.Contains(strings.Split(apps, "|"), "") {
			return nil, fmt.Errorf("%q: want the name of a secret and the apps that may use it, such as SHOP_HOOK=shop|billing, or SHOP_HOOK=* for all", text)
		}

		key := grantKey(name)
		switch {
		case ofKeys(key):
			return nil, fmt.Errorf("%q: %s holds what seals the cluster's secrets; no job may use it", text, secretEnv+key)
		case os.Getenv(secretEnv+key) == "":
			return nil, fmt.Errorf("%q: there is no variable %s", text, secretEnv+key)
		}
		grants[key] = append(grants[key], strings.Split(apps, "|")...)
	}
	return grants, nil
}

// Unused returns the variables with secrets of the node that no grant names, so that no job may use them.
func (g Grants) Unused() (names []string) {
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		key, found := strings.CutPrefix(name, secretEnv)
		if found && value != "" && !ofKeys(key) && len(g[key]) == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
