package job

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go-crontab/job/problem"
)

// CommandOptions say how to run a command. With the zero value the command runs as the node's own
// user, in that user's home, with empty input.
type CommandOptions struct {
	User         string            `json:"user,omitempty"`            // user[:group], by name or id; "": the node's own
	Dir          string            `json:"dir,omitempty"`             // absolute working directory; "": the user's home
	Env          map[string]string `json:"env,omitempty"`             // in addition to the variables of every command
	Stdin        string            `json:"stdin,omitempty"`           // its input; "": empty
	SuccessCodes []int             `json:"success_codes,omitempty"`   // exit codes of success; none: only 0
	SkipCodes    []int             `json:"skip_exit_codes,omitempty"` // exit codes that mean: there was nothing to do
	Grace        Duration          `json:"grace,omitempty"`           // from SIGTERM to SIGKILL; 0: [DefaultGrace]
	Limits       Limits            `json:"limits,omitzero"`
}

// Limits bounds the resources of a command. Zero fields set no limit. Memory, CPU and PIDs limit
// all processes of the command together. The other fields limit each process.
type Limits struct {
	Memory Size    `json:"memory,omitempty"` // exceeding it ends all processes
	CPU    float64 `json:"cpu,omitempty"`    // processors: 0.5 is half a processor
	PIDs   int     `json:"pids,omitempty"`   // processes and threads at once

	OpenFiles    int   `json:"open_files,omitempty"`
	CPUSeconds   int   `json:"cpu_seconds,omitempty"` // processor time; then SIGXCPU, and SIGKILL later
	FileSize     Size  `json:"file_size,omitempty"`   // of a written file; beyond it SIGXFSZ
	AddressSpace Size  `json:"address_space,omitempty"`
	Core         *Size `json:"core,omitempty"` // of a core dump; 0: no dump, nil: the node's setting
}

// Shared reports whether there are limits for all processes together. Such limits need a cgroup.
func (l Limits) Shared() bool { return l.Memory != 0 || l.CPU != 0 || l.PIDs != 0 }

// Each reports whether there are limits for each process.
func (l Limits) Each() bool {
	return l.OpenFiles != 0 || l.CPUSeconds != 0 || l.FileSize != 0 || l.AddressSpace != 0 || l.Core != nil
}

// Bounds and defaults of the options.
const (
	MaxStdin     = 64 << 10 // bytes
	MaxEnv       = 100      // variables
	MaxEnvBytes  = 32 << 10 // names and values together
	MaxGrace     = 5 * time.Minute
	DefaultGrace = 5 * time.Second

	ReservedEnv = "GOCRONTAB_" // prefix of variables about the attempt

	maxDir       = 4096 // bytes, the usual PATH_MAX
	minMemory    = Size(1 << 20)
	maxSize      = Size(1 << 50)
	minCPU       = 0.01
	maxCPU       = 1024
	maxPIDs      = 4 << 20
	maxOpenFiles = 1 << 30
	minOpenFiles = 8 // bash itself needs a few
	minSpace     = Size(16 << 20)
	maxSeconds   = 366 * 24 * 3600
)

// Succeeds reports whether an exit code counts as success.
func (o *CommandOptions) Succeeds(code int) bool {
	if len(o.SuccessCodes) == 0 {
		return code == 0
	}
	return slices.Contains(o.SuccessCodes, code)
}

// Skips reports whether an exit code means that there was nothing to do.
func (o *CommandOptions) Skips(code int) bool { return slices.Contains(o.SkipCodes, code) }

// given lists the fields that are set.
func (o *CommandOptions) given() []string {
	var names []string
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"user", o.User != ""}, {"dir", o.Dir != ""}, {"env", len(o.Env) > 0}, {"stdin", o.Stdin != ""},
		{"success_codes", len(o.SuccessCodes) > 0}, {"skip_exit_codes", len(o.SkipCodes) > 0},
		{"grace", o.Grace != 0}, {"limits", o.Limits != Limits{}},
	} {
		if f.set {
			names = append(names, f.name)
		}
	}

	return names
}

// validateOptions checks the options, which only commands may have.
func (s *Spec) validateOptions(p *Problems) {
	o := &s.CommandOptions
	if s.Command == "" {
		for _, name := range o.given() {
			p.Add(name, problem.OnlyWith, "command")
		}
		return
	}

	o.validateUser(p)
	o.validateDir(p)
	o.validateEnv(p)
	switch {
	case len(o.Stdin) > MaxStdin:
		p.Add("stdin", problem.TooManyBytes.Advise("put it in a file and read that"), len(o.Stdin), MaxStdin)
	case !utf8.ValidString(o.Stdin):
		p.Add("stdin", problem.NotUTF8)
	}

	if !validateCodes(p, "success_codes", o.SuccessCodes, 0) || !validateCodes(p, "skip_exit_codes", o.SkipCodes, 1) {
		return
	}
	for i, code := range o.SkipCodes {
		if at := slices.Index(o.SuccessCodes, code); at >= 0 {
			p.Add(fmt.Sprintf("skip_exit_codes[%d]", i), problem.CodeTwice, code, "success_codes")
			p.Add(fmt.Sprintf("success_codes[%d]", at), problem.CodeTwice, code, "skip_exit_codes")
		}
	}

	if o.Grace < 0 || time.Duration(o.Grace) > MaxGrace {
		p.Add("grace", problem.NotBetween, o.Grace, problem.Shown(0, fmt.Sprintf("0 (%s)", Duration(DefaultGrace))),
			Duration(MaxGrace))
	}

	o.Limits.validate(p)
}

// validateCodes checks exit codes, and reports whether they are valid. The problem names the first
// bad code.
func validateCodes(p *Problems, field string, codes []int, least int) bool {
	for i, code := range codes {
		switch {
		case code < least || code > 255:
			p.Add(fmt.Sprintf("%s[%d]", field, i), problem.NotBetween, code, least, 255)
			return false
		case slices.Contains(codes[:i], code):
			p.Add(fmt.Sprintf("%s[%d]", field, i), problem.GivenAlready, code)
			return false
		}
	}
	return true
}

func (o *CommandOptions) validateUser(p *Problems) {
	if o.User == "" {
		return
	}

	for _, part := range strings.SplitN(o.User, ":", 2) {
		switch {
		case part == "":
			p.Add("user", problem.NotAUser, o.User)
			return
		case len(part) > MaxName || !utf8.ValidString(part) || strings.ContainsFunc(part, unicode.IsControl) ||
			strings.ContainsAny(part, ":/"):
			p.Add("user", problem.NotAUserID, part)
			return
		}
	}
}

func (o *CommandOptions) validateDir(p *Problems) {
	switch {
	case o.Dir == "":
	case !strings.HasPrefix(o.Dir, "/"):
		p.Add("dir", problem.NotAbsolute, o.Dir)
	case len(o.Dir) > maxDir:
		p.Add("dir", problem.TooManyBytes, len(o.Dir), maxDir)
	case strings.ContainsRune(o.Dir, 0) || !utf8.ValidString(o.Dir):
		p.Add("dir", problem.NotText)
	}
}

func (o *CommandOptions) validateEnv(p *Problems) {
	if len(o.Env) > MaxEnv {
		p.Add("env", problem.TooMany, len(o.Env), MaxEnv)
		return
	}

	bytes := 0
	for _, name := range slices.Sorted(maps.Keys(o.Env)) {
		value := o.Env[name]
		bytes += len(name) + len(value)
		field := "env." + name
		switch {
		case !isVariable(name):
			p.Add(field, problem.EnvName)
		case strings.HasPrefix(name, ReservedEnv):
			p.Add(field, problem.EnvReserved, ReservedEnv)
		case strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_"):
			// The variable would affect bash before its limits apply.
			p.Add(field, problem.EnvOfBash, name)
		case strings.ContainsRune(value, 0) || !utf8.ValidString(value):
			p.Add(field, problem.NotText)
		}
	}

	if bytes > MaxEnvBytes {
		p.Add("env", problem.TooManyBytes, bytes, MaxEnvBytes)
	}
}

// isVariable reports whether bash accepts a variable name.
func isVariable(name string) bool {
	for i, r := range []byte(name) {
		switch {
		case r == '_', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
		case r >= '0' && r <= '9' && i > 0:
		default:
			return false
		}
	}
	return name != "" && len(name) <= MaxName
}

func (l *Limits) validate(p *Problems) {
	size := func(field string, v, least Size) {
		if v != 0 && (v < least || v > maxSize) {
			p.Add("limits."+field, problem.NotBetween, v, least, maxSize)
		}
	}

	number := func(field string, v, least, most int) {
		if v != 0 && (v < least || v > most) {
			p.Add("limits."+field, problem.NotBetween, v, least, most)
		}
	}

	size("memory", l.Memory, minMemory)
	if l.CPU != 0 && !(l.CPU >= minCPU && l.CPU <= maxCPU) {
		p.Add("limits.cpu", problem.NotBetween, l.CPU, minCPU,
			problem.Shown(maxCPU, fmt.Sprintf("%d processors", maxCPU)))
	}

	number("pids", l.PIDs, 1, maxPIDs)
	number("open_files", l.OpenFiles, minOpenFiles, maxOpenFiles)
	number("cpu_seconds", l.CPUSeconds, 1, maxSeconds)
	size("file_size", l.FileSize, 1024)
	size("address_space", l.AddressSpace, minSpace)
	if l.Core != nil && (*l.Core < 0 || *l.Core > maxSize) {
		p.Add("limits.core", problem.NotBetween, *l.Core, problem.Shown(0, "0 (none)"), maxSize)
	}
}
