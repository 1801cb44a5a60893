package job

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"go-crontab/job/problem"
)

// Labels that every node has and users cannot set. They are the node's name, its system and its
// processor. For each handler of the node there is a label that begins with [HandlerLabel].
const (
	LabelNode    = "node"
	LabelOS      = "os"
	LabelArch    = "arch"
	HandlerLabel = "handler/"

	// LabelOnly, with the value "handlers", means that the node takes only jobs of its handlers.
	LabelOnly = "only"

	MaxNodeLabels = 64
	MaxHandlerKey = 100      // bytes
	MaxPayload    = 64 << 10 // bytes
)

// CheckNodeLabels returns the problem of the labels configured for a node, or nil.
func CheckNodeLabels(labels map[string]string) error {
	if len(labels) > MaxNodeLabels {
		return fmt.Errorf("there are %d; at most %d are allowed", len(labels), MaxNodeLabels)
	}

	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if err := checkLabelKey(key); err != nil {
			return fmt.Errorf("the name %w", err)
		}
		switch {
		case key == LabelNode, key == LabelOS, key == LabelArch, key == LabelOnly, strings.HasPrefix(key, HandlerLabel):
			return fmt.Errorf("%s is set by the node itself; choose another name", key)
		}
		if err := checkLabelValue(labels[key]); err != nil {
			return fmt.Errorf("the value of %s %w", key, err)
		}
	}

	return nil
}

// CheckHandlerKey returns the problem of the key of a handler, or nil.
func CheckHandlerKey(key string) error {
	if len(key) > MaxHandlerKey {
		return problem.Errorf(problem.TooManyBytes, len(key), MaxHandlerKey)
	}
	return checkLabelKey(key)
}

// WithHandlers returns a node's labels together with the labels of its handlers.
func WithHandlers(labels map[string]string, handlers []string) map[string]string {
	out := make(map[string]string, len(labels)+len(handlers))
	maps.Copy(out, labels)
	for _, key := range handlers {
		out[HandlerLabel+key] = ""
	}
	return out
}

// Place returns the job's selector. If the job has a handler, the selector also requires the
// handler's label.
func (s *Spec) Place() (Selector, error) {
	sel, err := ParseSelector(s.Selector)
	if err == nil && s.Handler != "" {
		sel = sel.Requires(HandlerLabel + s.Handler)
	}
	return sel, err
}

// Takes reports whether a node with these labels, including handler labels, runs jobs with this
// selector.
func (s Selector) Takes(labels map[string]string) bool {
	if labels[LabelOnly] == "handlers" && !slices.ContainsFunc(s.terms, func(t term) bool {
		return t.op == opHas && strings.HasPrefix(t.key, HandlerLabel)
	}) {
		return false
	}
	return s.Matches(labels)
}

// placementDefaults stores the selector in canonical form. So equal selectors give equal
// definitions.
func (s *Spec) placementDefaults() {
	if sel, err := ParseSelector(s.Selector); err == nil {
		s.Selector = sel.String()
	}
}

func (s *Spec) validatePlacement(p *Problems) {
	if _, err := ParseSelector(s.Selector); err != nil {
		p.Put("selector", problem.Of(err))
	}
}

// validateHandler checks the handler and its payload. That the job has only one kind is checked by
// validateExecutor.
func (s *Spec) validateHandler(p *Problems) {
	if s.Handler == "" {
		if s.Payload != "" {
			p.Add("payload", problem.OnlyWith.Advise("a command gets its input as stdin"), "handler")
		}
		return
	}
	if err := CheckHandlerKey(s.Handler); err != nil {
		p.Put("handler", problem.Of(err))
	}

	switch {
	case len(s.Payload) > MaxPayload:
		p.Add("payload", problem.TooManyBytes.Advise("store it elsewhere and give the handler its name"), len(s.Payload),
			MaxPayload)
	case !utf8.ValidString(s.Payload):
		p.Add("payload", problem.NotUTF8)
	}
}

// NoNode says why no node takes runs with this selector. An empty selector matches every node that
// takes work.
func NoNode(selector string) string {
	if selector == "" {
		return "no node can take it: all are cordoned, draining, or run handlers only"
	}
	return "no node matches " + selector
}

// The kinds and actions of nodes and handlers in audit lines.
const (
	KindNode    Kind = "node"
	KindHandler Kind = "handler"

	ActionCordon   Action = "cordon"
	ActionDrain    Action = "drain"
	ActionUncordon Action = "uncordon"
	ActionDisable  Action = "disable"
	ActionEnable   Action = "enable"
)

// ValidateNode checks the name and the reason in a request about a node. It returns Problems or
// nil.
func ValidateNode(name, reason string) error {
	var p Problems
	switch err := checkLabelValue(name); {
	case name == "":
		p.Add("name", problem.Empty)
	case err != nil:
		p.Put("name", problem.Of(err))
	}
	return p.withReason(reason)
}

// ValidateHandler checks the key and the reason in a request about a handler. It returns Problems
// or nil.
func ValidateHandler(key, reason string) error {
	var p Problems
	if err := CheckHandlerKey(key); err != nil {
		p.Put("handler", problem.Of(err))
	}
	return p.withReason(reason)
}

// withReason adds the problems of a reason.
func (p Problems) withReason(reason string) error {
	var more Problems
	if errors.As((&PauseRequest{Reason: reason}).Validate(0), &more) {
		p = append(p, more...)
	}
	if p == nil {
		return nil
	}
	return p
}
