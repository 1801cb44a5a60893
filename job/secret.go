package job

import (
	"regexp"

	"go-crontab/job/problem"
)

// Secret names a secret. Definitions never hold one: every reader of a job would read it, too.
type Secret string

// AppSecret is a secret of an app, or with "" one of all apps. A job uses its app's own secret of a name, or else that of
// all apps.
type AppSecret struct {
	App  string
	Name Secret
}

// MaxSecretName bounds the name of a secret, in bytes.
const MaxSecretName = 128

var secretName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// Check tells whether the name is one: whoever looks a secret up makes the name of a file of it.
func (s Secret) Check() error {
	if len(s) > MaxSecretName || !secretName.MatchString(string(s)) {
		return problem.Errorf(problem.SecretName, string(s), MaxSecretName)
	}
	return nil
}
