package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"go-crontab/sql"

	"github.com/spf13/pflag"
)

// envPrefix is the prefix of all variables.
const envPrefix = "GOCRONTAB_"

// envName returns the variable of a flag: "session-expiry" is GOCRONTAB_SESSION_EXPIRY. The
// variable of label is plural, because it holds a list.
func envName(flag string) string {
	if flag == "label" {
		flag = "labels"
	}
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// takeEnv sets flags from their variables, unless the flags were given. For a secret, the variable
// with the suffix _FILE may name a file with the value. takeEnv returns all mistakes. Its errors
// never repeat a secret.
func takeEnv(flags *pflag.FlagSet, names, secrets []string) error {
	var wrong []error
	for _, name := range append(slices.Clone(names), secrets...) {
		if flags.Changed(name) {
			continue
		}

		from, value := envName(name), os.Getenv(envName(name))
		if file := os.Getenv(from + "_FILE"); value == "" && file != "" && slices.Contains(secrets, name) {
			from += "_FILE"
			b, err := os.ReadFile(file)
			if err != nil {
				wrong = append(wrong, usageError("%s: %w", from, err))
				continue
			}
			value = strings.TrimRight(string(b), "\r\n")
		}

		if value == "" {
			continue
		}
		err := flags.Set(name, value)
		if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
			wrong = append(wrong, usageError("%s %q: %s", from, value, wanted(invalid)))
			// The failed Set has changed the flag. Restore the default.
			f := flags.Lookup(name)
			if list, is := f.Value.(pflag.SliceValue); is {
				_ = list.Replace(nil)
			} else {
				_ = f.Value.Set(f.DefValue)
			}
		} else if err != nil {
			wrong = append(wrong, usageError("%s: %w", from, err))
		}
	}
	return errors.Join(wrong...)
}

// choice is a flag with a few valid words.
type choice struct {
	value *string
	words []string
}

// choiceVar adds a choice flag.
func choiceVar(flags *pflag.FlagSet, value *string, name, short, otherwise, what string, words ...string) {
	*value = otherwise
	flags.VarP(&choice{value, words}, name, short, what+": "+strings.Join(words, ", "))
}

func (c *choice) String() string { return *c.value }
func (c *choice) Type() string   { return "word" }
func (c *choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return fmt.Errorf("want one of %s", strings.Join(c.words, ", "))
	}
	*c.value = s
	return nil
}

// checkDSN reports a missing or invalid DSN as a usage error. It does not connect.
func checkDSN(dsn string) error {
	if dsn == "" {
		return &exitError{
			code: exitUsage, err: errors.New("no database given: --dsn is missing"),
			hint: "set it:  export GOCRONTAB_DSN='user:password@tcp(host:3306)/schema', or GOCRONTAB_DSN_FILE=FILE\n" +
				"to try go-crontab without a database:  " + program() + " dev",
		}
	}

	db, err := sql.Open(dsn, sql.DefaultTimeouts, 1)
	if err != nil {
		return usageError("%w", err)
	}
	return db.Close()
}

// dsnVar adds the flag with the database.
func dsnVar(flags *pflag.FlagSet, dsn *string) {
	flags.StringVar(dsn, "dsn", "",
		"database, as user:password@tcp(host:3306)/schema, or tcp(host1:3306,host2:3306) for several members;\n"+
			"ps shows it to all users, so prefer GOCRONTAB_DSN or GOCRONTAB_DSN_FILE")
}
