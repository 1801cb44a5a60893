package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// optioned is a valid job with options.
func optioned(change func(*CommandOptions)) *Spec {
	s := &Spec{Name: "n", Schedule: "* * * * *", Command: "true"}
	s.Defaults(time.Unix(1_800_000_000, 0))
	change(&s.CommandOptions)
	return s
}

func TestCommandOptionsAreTaken(t *testing.T) {
	t.Parallel()
	zero := Size(0)
	for name, change := range map[string]func(*CommandOptions){
		"nothing":     func(*CommandOptions) {},
		"a user":      func(o *CommandOptions) { o.User = "backup" },
		"with group":  func(o *CommandOptions) { o.User = "1000:www-data" },
		"of a domain": func(o *CommandOptions) { o.User = `EXAMPLE\domain users` },
		"everything": func(o *CommandOptions) {
			*o = CommandOptions{
				Dir:          "/srv/data 1",
				Env:          map[string]string{"A": "", "_b2": "x=y\n", "HOME": "/srv", "BASH_ENV": "/etc/profile"},
				Stdin:        strings.Repeat("x", MaxStdin),
				SuccessCodes: []int{0, 1, 255}, Grace: Duration(MaxGrace),
				Limits: Limits{
					Memory: 1 << 30, CPU: 0.5, PIDs: 1, OpenFiles: 64, CPUSeconds: 1, FileSize: 1 << 40,
					AddressSpace: 1 << 30, Core: &zero,
				},
			}
		},
	} {
		s := optioned(change)
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}

		text, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}

		back, err := DecodeSpec(text)
		again, _ := back.Encode()
		if err != nil || again != text {
			t.Errorf("%s: stored as\n%s\nread back as\n%s, %v", name, text, again, err)
		}
	}
}

func TestCommandOptionsAreChecked(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range MaxEnv + 1 {
		many[fmt.Sprint("V", i)] = ""
	}

	negative := Size(-1)
	for want, change := range map[string]func(*CommandOptions){
		`user: "a:" is not`:                   func(o *CommandOptions) { o.User = "a:" },
		`user: ":a" is not`:                   func(o *CommandOptions) { o.User = ":a" },
		`user: "b:c" is not a name`:           func(o *CommandOptions) { o.User = "a:b:c" },
		`user: "../root" is not a name`:       func(o *CommandOptions) { o.User = "../root" },
		`user: "a\nb" is not a name`:          func(o *CommandOptions) { o.User = "a\nb" },
		`dir: "data" is not an absolute path`: func(o *CommandOptions) { o.Dir = "data" },
		`dir: contains a NUL byte`:            func(o *CommandOptions) { o.Dir = "/a\x00" },
		`dir: is 5001 bytes long`: func(o *CommandOptions) {
			o.Dir = "/" + strings.Repeat("x", 5000)
		},
		`env: has 101 entries`:                 func(o *CommandOptions) { o.Env = many },
		`env.1A: is not a valid variable name`: func(o *CommandOptions) { o.Env = map[string]string{"1A": ""} },
		`env.: is not a valid variable name`:   func(o *CommandOptions) { o.Env = map[string]string{"": ""} },
		`env.BASH_FUNC_ulimit%%: is not a valid variable name`: func(o *CommandOptions) {
			o.Env = map[string]string{"BASH_FUNC_ulimit%%": "() { :; }"}
		},
		`env.A=B: is not a valid variable name`: func(o *CommandOptions) {
			o.Env = map[string]string{"A=B": ""}
		},
		`env.GOCRONTAB_JOB: names that begin`: func(o *CommandOptions) {
			o.Env = map[string]string{"GOCRONTAB_JOB": ""}
		},
		`env.LD_PRELOAD: cannot be set here`: func(o *CommandOptions) {
			o.Env = map[string]string{"LD_PRELOAD": "/x.so"}
		},
		`env.A: contains a NUL`: func(o *CommandOptions) {
			o.Env = map[string]string{"A": "\x00"}
		},
		`env: is 40001 bytes long`: func(o *CommandOptions) {
			o.Env = map[string]string{"A": strings.Repeat("x", 40000)}
		},
		`stdin: is 65537 bytes long`: func(o *CommandOptions) {
			o.Stdin = strings.Repeat("x", MaxStdin+1)
		},
		`stdin: is not valid UTF-8`:              func(o *CommandOptions) { o.Stdin = "\xff" },
		`success_codes[1]: 256 is not`:           func(o *CommandOptions) { o.SuccessCodes = []int{0, 256} },
		`success_codes[0]: -1 is not`:            func(o *CommandOptions) { o.SuccessCodes = []int{-1} },
		`success_codes[2]: 0 is given twice`:     func(o *CommandOptions) { o.SuccessCodes = []int{0, 1, 0} },
		`skip_exit_codes[0]: 0 is not between 1`: func(o *CommandOptions) { o.SkipCodes = []int{0} },
		`skip_exit_codes[1]: 256 is not`:         func(o *CommandOptions) { o.SkipCodes = []int{1, 256} },
		`skip_exit_codes[1]: 7 is given twice`:   func(o *CommandOptions) { o.SkipCodes = []int{7, 7} },
		`skip_exit_codes[1]: 3 is also in success_codes; an exit code can only mean one of the two; ` +
			`success_codes[1]: 3 is also in skip_exit_codes`: func(o *CommandOptions) {
			o.SuccessCodes, o.SkipCodes = []int{0, 3}, []int{1, 3}
		},
		`grace: 5m1s is not between 0 (5s) and 5m`: func(o *CommandOptions) {
			o.Grace = Duration(MaxGrace + time.Second)
		},
		`grace: -1s is not`:                            func(o *CommandOptions) { o.Grace = Duration(-time.Second) },
		`limits.memory: 1000KiB is not between 1MiB`:   func(o *CommandOptions) { o.Limits.Memory = 1000 << 10 },
		`limits.memory: -1B is not`:                    func(o *CommandOptions) { o.Limits.Memory = -1 },
		`limits.cpu: 0.001 is not between 0.01`:        func(o *CommandOptions) { o.Limits.CPU = 0.001 },
		`limits.pids: -1 is not between 1`:             func(o *CommandOptions) { o.Limits.PIDs = -1 },
		`limits.open_files: 3 is not between 8`:        func(o *CommandOptions) { o.Limits.OpenFiles = 3 },
		`limits.cpu_seconds: -5 is not`:                func(o *CommandOptions) { o.Limits.CPUSeconds = -5 },
		`limits.file_size: 100B is not`:                func(o *CommandOptions) { o.Limits.FileSize = 100 },
		`limits.address_space: 1MiB is not`:            func(o *CommandOptions) { o.Limits.AddressSpace = 1 << 20 },
		`limits.core: -1B is not between 0 (none) and`: func(o *CommandOptions) { o.Limits.Core = &negative },
	} {
		if err := optioned(change).Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestOptionsGoWithACommandOnly(t *testing.T) {
	t.Parallel()
	s := optioned(func(o *CommandOptions) {
		o.User, o.Dir, o.Env, o.Stdin, o.SuccessCodes, o.Grace = "a", "/", map[string]string{"A": "b"}, "x", []int{0}, 1
		o.SkipCodes = []int{75}
		o.Limits.PIDs = 1
	})

	s.Command = ""
	var p Problems
	s.validateOptions(&p)
	fields := ""
	for _, q := range p {
		fields += q.Field + " "
	}

	if want := "user dir env stdin success_codes skip_exit_codes grace limits "; fields != want || !errors.As(error(p), &p) {
		t.Errorf("got problems of %q, want of %q", fields, want)
	}
}

func TestSucceeds(t *testing.T) {
	t.Parallel()
	o := CommandOptions{}
	if !o.Succeeds(0) || o.Succeeds(1) {
		t.Error("without a list 0 alone is success")
	}
	o.SuccessCodes = []int{3}
	if o.Succeeds(0) || !o.Succeeds(3) {
		t.Error("with a list what it names alone is success")
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0": "0B", "1": "1B", "1023": "1023B", "1024": "1KiB", "1025B": "1025B", "512MiB": "512MiB",
		"512 MiB": "512MiB", "512M": "512MiB", "512m": "512MiB",
		"2Gi": "2GiB", "3072MiB": "3GiB", "8191TiB": "8191TiB", "1536k": "1536KiB",
	} {
		got, err := ParseSize(text)
		if err != nil || got.String() != want {
			t.Errorf("%q: got %s, %v, want %s", text, got, err, want)
		}
		back, err := ParseSize(got.String())
		if err != nil || back != got {
			t.Errorf("%s: read back as %s, %v", got, back, err)
		}
	}

	for text, want := range map[string]string{
		"": "is not a size", "MiB": "is not a size", "-1": "is not a size", "1.5GiB": "is not a size", "1e3": "is not a size",
		"5MB": "write MiB", "5kb": "write KiB",
		"9PiB": "is not a size", "9000000TiB": "is not a size", "12Mi5": "is not a size", "5MMM": "is not a size",
		"99999999999999999999": "is not a size", "5iB": "is not a size",
	} {
		if got, err := ParseSize(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %s, %v, want an error with %q", text, got, err, want)
		}
	}

	var v struct{ A, B Size }
	if err := json.Unmarshal([]byte(`{"A": 2048, "B": "3KiB"}`), &v); err != nil || v.A != 2048 || v.B != 3072 {
		t.Errorf("got %+v, %v", v, err)
	}
}
