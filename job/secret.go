package job

import (
	"regexp"

	"go-crontab/job/problem"
)

// Secret is the name of a secret. Definitions hold only names: every reader of a job would see a
// value.
type Secret string

// AppSecret names a secret of an app. With an empty App it names a secret that all apps can use. A
// job uses the secret of its own app. If its app has none, it uses the secret of that name for all
// apps.
type AppSecret struct {
	App  string
	Name Secret
}

// MaxSecretName bounds the name of a secret, in bytes.
const MaxSecretName = 128

var secretName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// Check returns the problem of the name, or nil. Nodes use the name as a file name.
func (s Secret) Check() error {
	if len(s) > MaxSecretName || !secretName.MatchString(string(s)) {
		return problem.Errorf(problem.SecretName, string(s), MaxSecretName)
	}
	return nil
}
