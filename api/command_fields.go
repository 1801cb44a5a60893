package api

import (
	"encoding/json"
	"fmt"
	"strconv"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// commandFields reads the options of a command.
func commandFields(f *fields, o *job.CommandOptions) {
	f.text("user", &o.User)
	f.text("dir", &o.Dir)
	f.textMap("env", &o.Env)
	f.text("stdin", &o.Stdin)
	f.codes("success_codes", &o.SuccessCodes)
	f.codes("skip_exit_codes", &o.SkipCodes)
	f.some("grace", &o.Grace)

	f.inner("limits", func(f *fields) {
		l := &o.Limits
		f.size("memory", &l.Memory)
		f.number("cpu", &l.CPU)
		f.integer("pids", &l.PIDs)
		f.integer("open_files", &l.OpenFiles)
		f.integer("cpu_seconds", &l.CPUSeconds)
		f.size("file_size", &l.FileSize)
		f.size("address_space", &l.AddressSpace)

		core := job.Size(-1)
		if f.size("core", &core); core >= 0 {
			l.Core = &core
		}
	})
}

// size reads a number of bytes, as a text with a unit or as a number.
func (f *fields) size(name string, to *job.Size) {
	v, ok := f.take(name)
	if !ok {
		return
	}

	text, isText := v.(string)
	number, isNumber := v.(json.Number)
	if !isText && !isNumber {
		f.want(name, v, problem.WantSize)
		return
	}

	size, err := job.ParseSize(text + number.String())
	switch {
	case err != nil && isText:
		f.put(name, problem.Of(err))
	case err != nil:
		f.want(name, v, problem.WantSize)
	default:
		*to = size
	}
}

// codes reads a list of exit codes.
func (f *fields) codes(name string, to *[]int) {
	v, ok := f.take(name)
	if !ok {
		return
	}

	list, ok := v.([]any)
	if !ok {
		f.want(name, v, problem.WantCodes)
		return
	}

	codes := []int{}
	for i, item := range list {
		number, _ := item.(json.Number)
		code, err := strconv.Atoi(number.String())
		if err != nil {
			f.want(fmt.Sprintf("%s[%d]", name, i), item, problem.WantCode)
			return
		}
		codes = append(codes, code)
	}

	*to = codes
}
