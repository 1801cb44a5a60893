//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"go-crontab/internal/trace"
	"go-crontab/node"
	"go-crontab/sql"

	"github.com/spf13/pflag"
)

// checkFlag is the flag of serve that only prints and checks the settings.
const checkFlag = "check"

// setFlags returns the names of the flags that were given.
func setFlags(flags *pflag.FlagSet) map[string]bool {
	given := map[string]bool{}
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	return given
}

// report prints the effective settings, and returns everything that is wrong with them. onLine are
// the flags on the command line. wrong are the mistakes in the variables. report neither connects
// to MySQL nor listens.
func (s *serveSettings) report(c *console, flags *pflag.FlagSet, onLine map[string]bool, wrong error) error {
	t := &table{columns: []column{{head: "SETTING"}, {head: "VALUE", shrink: true}, {head: "FROM", spare: true}}}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == checkFlag || f.Name == "help" {
			return
		}
		from := originOf(f.Name, onLine)
		t.add(text(f.Name), text(s.effective(f)), cell{from, map[bool]colour{true: faint}[from == "default"]})
	})
	if err := t.print(c.out, terminalWidth(c.out), colourful(c.out)); err != nil {
		return err
	}

	log := slog.New(textHandler(c.err, slog.LevelWarn, colourful(c.err)))
	if err := errors.Join(wrong, s.checkAll(log)); err != nil {
		return &exitError{code: exitUsage, err: err, hint: hintOf(err)}
	}
	c.notef("The settings are valid. MySQL was not asked; to check it:  %s doctor --direct\n", program())
	return nil
}

// originOf says where the value of a flag comes from.
func originOf(flag string, onLine map[string]bool) string {
	name := envName(flag)
	switch {
	case onLine[flag]:
		return "--" + flag
	case flag == secretKeyFlag && os.Getenv(secretKeyEnv) != "":
		return secretKeyEnv
	case os.Getenv(name) != "":
		return name
	case slices.Contains(serveSecrets, flag) && os.Getenv(name+"_FILE") != "":
		return name + "_FILE"
	}
	return "default"
}

// effective returns the value of a setting for people. A secret is hidden. A default that depends
// on the machine is filled in.
func (s *serveSettings) effective(f *pflag.Flag) string {
	value := f.Value.String()
	if list, is := f.Value.(pflag.SliceValue); is {
		value = strings.Join(list.GetSlice(), ", ")
	}
	if d, is := f.Value.(*durationValue); is && *d == 0 {
		value = "0s"
	}
	switch {
	case f.Name == "dsn" && value != "":
		return sql.Shown(value)
	case slices.Contains(serveSecrets, f.Name) && value != "":
		return "***"
	case f.Name == secretKeyFlag && value == "" && os.Getenv(secretKeyEnv) != "":
		return "***"
	case f.Name == secretKeyFlag && value == "":
		return os.Getenv(envName(secretKeyFlag))
	case value != "" && value != "0":
		return value
	}

	switch f.Name {
	case "node":
		value, _ = os.Hostname()
	case "slots":
		value = fmt.Sprint(node.SlotsPerCPU * runtime.NumCPU())
	case "state-dir":
		value, _ = defaultStateDir(s.nodeName())
	case "advertise":
		if l, err := net.ResolveTCPAddr("tcp", s.listen); err == nil {
			value, _ = address("", s.access.scheme(), l)
		}
	}
	return value
}

// nodeName returns the name of the node. If the machine has no name, it returns "".
func (s *serveSettings) nodeName() string {
	if s.node != "" {
		return s.node
	}
	host, _ := os.Hostname()
	return host
}

// checkAll returns everything that is wrong with the settings.
func (s *serveSettings) checkAll(log *slog.Logger) error {
	labels, wrongLabels := labelsOf(s.labels)
	_, wrongKeys := secretKeys(s.keyFile, log)

	var wrongTLS error
	if s.access.secured() && s.access.tlsKey != "" {
		_, wrongTLS = s.access.certificate(log)
	}

	if wrongTLS != nil {
		wrongTLS = fmt.Errorf("--tls-cert, --tls-key: %w", wrongTLS)
	}

	_, wrongTraces := trace.New(context.Background(), s.nodeName(), readVersion().Version, log)
	cfg := s.config(labels, log)
	cfg.Name = s.nodeName()
	for _, d := range []*time.Duration{&cfg.Expiry, &cfg.LookAhead, &cfg.Grace, &cfg.ArchiveTimeout} {
		*d = max(0, *d) // check has refused it
	}
	cfg.Slots = max(0, cfg.Slots)
	return errors.Join(s.check(), wrongLabels, wrongKeys, wrongTLS, wrongTraces, node.CheckConfig(cfg))
}
