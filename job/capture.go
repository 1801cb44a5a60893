package job

import "go-crontab/job/problem"

// Capture says how much of the output of a job's runs is kept, and in which form.
type Capture struct {
	Keep       Size `json:"keep,omitempty"`        // bytes; half of them from the beginning, half from the end
	MarkStderr bool `json:"mark_stderr,omitempty"` // read stdout and stderr apart, and mark the lines of stderr
}

// Bounds of Capture.Keep. DefaultOutput replaces a zero. It fits in one row and one buffer.
const (
	DefaultOutput = Size(64 << 10)
	MostOfOutput  = Size(16 << 20)
)

func (s *Spec) validateOutput(p *Problems) {
	keep := s.Output.Keep
	switch {
	case keep != 0 && s.HTTP != nil:
		p.Add("output.keep", problem.NotWith.Advise("http.body_limit says how much of the response is kept"), "http")
	case keep != 0 && (keep < DefaultOutput || keep > MostOfOutput):
		p.Add("output.keep", problem.NotBetween, keep, DefaultOutput, MostOfOutput)
	}

	if s.Output.MarkStderr && s.Command == "" {
		p.Add("output.mark_stderr", problem.OnlyWith, "command")
	}
}
