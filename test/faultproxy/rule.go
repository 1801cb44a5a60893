package faultproxy

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"
)

// A Rule says what goes wrong with which commands.
type Rule struct {
	// Match picks the commands; nil picks every statement. Several connections may call it at once.
	// It is not called for commands without a reply.
	Match func(Command) bool
	// Skip is the number of matching commands that pass first.
	Skip int
	// Times is the number of times the rule fires: 0 means once, a negative number always.
	Times int
	// Gap is the number of matching commands that pass between two firings.
	Gap int
	// Action is done to the command when the rule fires.
	Action Action
}

// SQL matches statements by a regular expression, both queries and executions of prepared
// statements. It panics if the expression does not compile.
func SQL(pattern string) func(Command) bool {
	re := regexp.MustCompile(pattern)
	return func(c Command) bool { return c.IsStatement() && re.MatchString(c.SQL) }
}

// CommitOf matches the COMMIT of a transaction in which some statement matches a regular
// expression. It panics if the expression does not compile.
func CommitOf(pattern string) func(Command) bool {
	re := regexp.MustCompile(pattern)
	return func(c Command) bool { return c.IsCommit() && slices.ContainsFunc(c.Tx, re.MatchString) }
}

type kind int

const (
	noAction kind = iota
	cutBefore
	cutAfter
	hold
	holdBefore
	answer
)

// An Action is the effect of a Rule on a command. The functions below make one.
type Action struct {
	kind     kind
	d        time.Duration
	thenCut  bool
	code     uint16
	sqlState string
	text     string
}

// CutBefore withholds the command from the server and resets both connections: the request got
// lost.
func CutBefore() Action { return Action{kind: cutBefore} }

// CutAfter lets the server run the command, waits for its reply, drops it and resets both
// connections: the acknowledgement got lost.
func CutAfter() Action { return Action{kind: cutAfter} }

// Hold lets the server run the command and withholds its reply for d, or until Release. With d = 0
// only Release ends it.
func Hold(d time.Duration) Action { return Action{kind: hold, d: d} }

// HoldBefore withholds the command for d, or until Release, and then forwards it even if the client
// has long gone: a ghost. With d = 0 only Release ends it.
func HoldBefore(d time.Duration) Action { return Action{kind: holdBefore, d: d} }

// ThenCut makes Hold and HoldBefore end by dropping the held packet and resetting both connections.
func (a Action) ThenCut() Action {
	a.thenCut = true
	return a
}

// Error answers in place of the server. Some errors mean that the server has ended the whole
// transaction (a deadlock, 1213, and MariaDB's changed record, 1020). For these the transaction is
// really rolled back first.
func Error(code uint16, sqlState, text string) Action {
	return Action{kind: answer, code: code, sqlState: sqlState, text: text}
}

func (a Action) rollsBack() bool { return a.kind == answer && (a.code == 1213 || a.code == 1020) }

func (a Action) String() string {
	switch a.kind {
	case cutBefore:
		return "cut before"
	case cutAfter:
		return "cut after"
	case hold:
		return "hold reply"
	case holdBefore:
		return "hold command"
	case answer:
		return fmt.Sprintf("error %d", a.code)
	}

	return "no action"
}

// Injected is a Rule at work.
type Injected struct {
	rule     Rule
	count    watched[count]
	released watched[int] // only its changes matter
}

type count struct {
	skip  int
	left  int // firings not yet begun; negative: unlimited
	fired int
	open  int // begun and not over
}

func (c count) usedUp() bool { return c.left == 0 }

func inject(r Rule) *Injected {
	if r.Match == nil {
		r.Match = Command.IsStatement
	}
	if r.Times == 0 {
		r.Times = 1
	}
	i := &Injected{rule: r}
	i.count.value = count{skip: r.Skip, left: r.Times}
	return i
}

// Fired returns the number of times that the fault took effect: a connection cut, a command or a
// reply held, an error returned. It counts effects that a client has noticed. A CutAfter or Hold
// whose server died without a reply has used up one of its Times without firing.
func (i *Injected) Fired() int {
	c, _ := i.count.get()
	return c.fired
}

// Wait blocks until the rule has fired Times times, or once if Times is negative.
func (i *Injected) Wait(ctx context.Context) error {
	want := max(1, i.rule.Times)
	if err := i.count.await(ctx, func(c count) bool { return c.fired >= want }); err != nil {
		return fmt.Errorf("wait for %v to fire, %d of %d times so far: %w", i.rule.Action, i.Fired(), want, err)
	}
	return nil
}

// Settle blocks until every firing of the rule is over. Held replies have then been delivered or
// dropped. Held commands have been dropped, or the server has replied to them, even if the client
// has left.
func (i *Injected) Settle(ctx context.Context) error {
	if err := i.count.await(ctx, func(c count) bool { return c.open == 0 }); err != nil {
		return fmt.Errorf("wait for %v to be over: %w", i.rule.Action, err)
	}
	return nil
}

// Release lets everything go that the rule holds now.
func (i *Injected) Release() { i.released.update(func(n *int) { *n++ }) }

// Remove keeps the rule from firing again. Anything that it holds stays held.
func (i *Injected) Remove() { i.count.update(func(c *count) { c.left = 0 }) }

// begin claims one firing for c, or returns nil if the rule lets it pass.
func (i *Injected) begin(c Command) *firing {
	if n, _ := i.count.get(); n.usedUp() || !i.rule.Match(c) {
		return nil
	}

	var f *firing

	i.count.update(func(n *count) {
		switch {
		case n.usedUp(): // another connection was faster
		case n.skip > 0:
			n.skip--
		default:
			n.left, n.skip = max(-1, n.left-1), i.rule.Gap
			n.open++
			_, released := i.released.get()
			f = &firing{Action: i.rule.Action, of: i, released: released}
		}
	})

	return f
}

// A firing is a single application of a rule, to one command.
type firing struct {
	Action
	of       *Injected
	released <-chan struct{}
	over     sync.Once
}

// hit notes that the fault has taken effect.
func (f *firing) hit() { f.of.count.update(func(c *count) { c.fired++ }) }

// settle notes that the firing is over. Further calls do nothing.
func (f *firing) settle() {
	f.over.Do(func() { f.of.count.update(func(c *count) { c.open-- }) })
}

// wait blocks while the firing holds something back.
func (f *firing) wait(ctx context.Context) error {
	var late <-chan time.Time

	if f.d > 0 {
		t := time.NewTimer(f.d)
		defer t.Stop()
		late = t.C
	}

	select {
	case <-late:
	case <-f.released:
	case <-ctx.Done():
		return context.Cause(ctx)
	}

	if f.thenCut {
		return errCut
	}

	return nil
}
