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

// Secrets looks up the secrets that definitions name.
type Secrets interface {
	// Secret returns a secret for a job of an app.
	Secret(app string, name job.Secret) ([]byte, error)
}

// NodeSecrets are the node's own secrets, which its operator grants to apps. A secret is the file
// APP/NAME in Dir. If Grants has the app, a secret may also be the variable GOCRONTAB_SECRET_NAME,
// with the name in capitals and _ for . and -. Each use reads the secret again, so a changed file
// takes effect at once. Commands do not inherit the variables.
type NodeSecrets struct {
	Dir    string // "": no files
	Grants Grants
}

// everyApp stands for all apps, as the name of a folder and in grants.
const everyApp = "*"

// secretEnv is the prefix of the variables. Without it a job could use any variable of the node.
const secretEnv = reserved + "SECRET_"

// maxSecret bounds a secret, in bytes.
const maxSecret = 64 << 10

// Secret returns a secret without the line break at its end. An empty secret is an error, because
// anyone could forge signatures that are made with it.
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
		return nil, fmt.Errorf("secret %s: has %d bytes; at most %d are allowed", name, len(value), maxSecret)
	}
	return value, nil
}

// missing returns the error of a missing secret. The error does not show whether other apps have
// such a secret.
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

	return fmt.Errorf("secret %s: neither the cluster nor this node has one that jobs of the app %q may use; "+
		"store it with go-crontab secret set, or give the node %s", name, app, strings.Join(ways, " or "))
}

// file reads the file of the app. If that does not exist, it reads the file of all apps.
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

// isFolder reports whether an app's name is safe as a folder name, so that it leads to no other
// place.
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

// ofKeys reports whether a variable holds the keys that seal the cluster's secrets.
func ofKeys(key string) bool { return key == "KEY" || key == "KEY_FILE" }

// Grants lists the apps that may use each of the node's variables. The key is the name after GOCRONTAB_SECRET_.
type Grants map[string][]string

// grantMarks separate the parts of a grant, and the grants of a list.
const grantMarks = "=|,"

// grantKey returns a secret's name in the form that its variable has.
func grantKey(name string) string {
	return strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}

// ParseGrants reads grants such as SHOP_HOOK=shop|billing and HOOK=*. If the node does not have
// the variable of a grant, that is an error.
func ParseGrants(texts []string) (Grants, error) {
	grants := Grants{}
	for _, text := range texts {
		name, apps, _ := strings.Cut(text, "=")
		if err := job.Secret(name).Check(); err != nil || apps == "" || slices.Contains(strings.Split(apps, "|"), "") {
			return nil, fmt.Errorf("%q: want the name of a secret and the apps that may use it, "+
				"such as SHOP_HOOK=shop|billing, or SHOP_HOOK=* for all", text)
		}

		key := grantKey(name)
		switch {
		case ofKeys(key):
			return nil, fmt.Errorf("%q: %s holds the key that seals the cluster's secrets; no job may use it",
				text, secretEnv+key)
		case os.Getenv(secretEnv+key) == "":
			return nil, fmt.Errorf("%q: the variable %s is not set", text, secretEnv+key)
		}
		grants[key] = append(grants[key], strings.Split(apps, "|")...)
	}
	return grants, nil
}

// Unused returns the node's secret variables that no grant names. No job may use them.
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
