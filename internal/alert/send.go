package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

const (
	sendEvery  = time.Second     // pause between looks while there are messages
	sendCalm   = 2 * time.Second // pause otherwise
	dueAtOnce  = 200
	maxTries   = 8
	tooOld     = 24 * time.Hour   // an unsent message of this age is given up
	settleTime = 15 * time.Second // added to the timeout of a try before other nodes may take the message
	pingLanes  = 32               // ping lanes that may be busy: even if seven hosts hang, there is room for others
	pingTime   = 10 * time.Second
)

// pauses holds the pauses after the first failed try, after the second, and so on.
var pauses = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute,
	5 * time.Minute, 10 * time.Minute, 20 * time.Minute,
}

// SenderConfig is what a sender works with.
type SenderConfig struct {
	DB      read.Watch
	Session Session
	Outside *Outside
	Lookout Lookout
	Wake    loop.Wake // there is a new message
	Log     *slog.Logger
}

// Sender sends due messages. Every node runs one; each claims the messages that it sends.
type Sender struct {
	SenderConfig

	mu    sync.Mutex
	busy  map[lane]bool // lanes with a sending goroutine
	lanes sync.WaitGroup
}

// NewSender returns a sender. The caller runs it.
func NewSender(cfg SenderConfig) *Sender { return &Sender{SenderConfig: cfg, busy: map[lane]bool{}} }

// Run sends until ctx ends. If a sending is interrupted, its message is put back for other nodes.
func (s *Sender) Run(ctx context.Context) error {
	defer s.lanes.Wait()
	return loop.Loop{
		First:  sendCalm,
		Period: sendCalm,
		Wake:   s.Wake,
		Log:    s.Log,
		Failed: "cannot read alert messages, trying again",
	}.Run(ctx, func(ctx context.Context, woken bool) (pause time.Duration, err error) {
		if !woken && s.Lookout.NothingToSend() || !s.Session.Fresh() {
			return 0, loop.ErrSkipped
		}
		n, err := s.look(ctx, s.Session.Now())
		if n > 0 {
			pause = sendEvery
		}
		return pause, err
	})
}

// lane is a unit in which one goroutine at a time sends: a channel, or some of the pings to a
// host.
type lane struct {
	channel int64 // 0: pings
	pings   pingLane
}

func laneOf(d *DeliveryRow) lane {
	if d.Kind == DeliveryPing {
		return lane{pings: pingLane{Host: d.Target, Rest: d.JobID % pingsAtHost}}
	}
	return lane{channel: d.ChannelID}
}

// busyLanes returns the lanes with a sending goroutine. The caller holds mu.
func (s *Sender) busyLanes() (busy busyLanes) {
	for l := range s.busy {
		if l.channel == 0 {
			busy.Pings = append(busy.Pings, l.pings)
		} else {
			busy.Channels = append(busy.Channels, l.channel)
		}
	}
	busy.NoPings = len(busy.Pings) >= pingLanes
	return busy
}

// look starts a goroutine for each idle lane with due messages. It returns the number of due
// messages plus the number of busy lanes.
func (s *Sender) look(ctx context.Context, now job.Micros) (int, error) {
	s.mu.Lock()
	busy := s.busyLanes()
	s.mu.Unlock()

	due, err := dueDeliveries(s.DB.Reader(ctx), now, busy, dueAtOnce)
	if err != nil {
		return 0, err
	}
	lanes := map[lane][]DeliveryRow{}
	for _, d := range due {
		lanes[laneOf(&d)] = append(lanes[laneOf(&d)], d)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	for l, list := range lanes {
		if s.busy[l] || l.channel == 0 && s.busyLanes().NoPings {
			continue
		}
		s.busy[l] = true
		s.lanes.Go(func() {
			defer func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.busy, l)
			}()
			s.lane(ctx, list)
		})
	}

	return len(due) + len(busy.Channels) + len(busy.Pings), nil
}

// lane sends a lane's messages, one after the other.
func (s *Sender) lane(ctx context.Context, list []DeliveryRow) {
	defer func() {
		if r := recover(); r != nil { // one bad message never stops a node
			s.Log.Error("panic while sending an alert message", "message", list[0].ID, "panic", r)
		}
	}()

	for i := range list {
		if ctx.Err() != nil || !s.Session.Fresh() {
			return
		}
		more, err := s.deliver(ctx, &list[i], list[i:])
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("cannot process an alert message, trying again", "message", list[i].ID, "error", err)
		}
		if !more {
			return
		}
	}
}

// letter is a message with everything needed to send it.
type letter struct {
	DeliveryRow
	channel   job.AlertChannel
	rule      job.AlertRule
	job       job.AlertJob
	items     []job.AlertItem
	templates []error // errors of templates
}

// verdict is the result of a try.
type verdict struct {
	said  string
	err   error
	final bool          // a further try is pointless
	after time.Duration // pause that the other side asked for; zero: none
	state DeliveryState // next state of the message; DeliveryPending: err decides
}

// errLater says that a channel has reached its limit of messages a minute.
var errLater = errors.New("later")

// deliver claims, sends and settles a message. more reports whether the lane should go on.
func (s *Sender) deliver(ctx context.Context, seen *DeliveryRow, rest []DeliveryRow) (more bool, err error) {
	now := s.Session.Now()
	l, early, err := s.open(ctx, seen, now)
	if err != nil {
		return true, err
	}

	// A PagerDuty event waits for earlier events of its alert.
	if early == nil && l.channel.Type == job.ChannelPagerDuty {
		at, err := s.earlier(ctx, seen)
		if err != nil {
			return true, err
		}
		if at != 0 {
			return true, s.postpone(ctx, rest[:1], max(at, now.Add(time.Second)))
		}
	}

	// Claim the message.
	timeout := pingTime
	if seen.Kind != DeliveryPing {
		timeout = time.Duration(l.channel.Timeout)
	}
	var later job.Micros
	err = s.DB.Tx(ctx, func(tx *sql.Tx) error {
		if early == nil && seen.ChannelID != 0 {
			ok, at, err := takeRate(tx, seen.ChannelID, max(1, l.channel.Rate), now)
			if err != nil {
				return err
			}
			if !ok {
				later = at
				return errLater
			}
		}
		d, err := claimDelivery(tx, seen, s.Session.ID(), now, now.Add(timeout+settleTime))
		l.DeliveryRow = d
		return err
	})

	switch {
	case errors.Is(err, errLater):
		return false, s.postpone(ctx, rest, later)
	case errors.Is(err, sql.ErrMoved):
		return true, nil // another node was faster
	case err != nil:
		return true, err // if the claim was committed after all, the message becomes free later
	}

	// If we die from here on, the message is sent again, with the same key.
	v := early
	if v == nil {
		_ = json.Unmarshal([]byte(l.Items), &l.items) // a value changed outside the program may be undecodable: empty
		if l.Kind == DeliveryOfAlert {
			s.describe(ctx, l)
		}
		bounded, cancel := context.WithTimeout(ctx, timeout)
		sent := s.Outside.send(bounded, l)
		cancel()
		v = &sent
	}
	return true, s.settle(ctx, l, v)
}

// postpone makes the messages of a lane wait until an instant. Meanwhile new events can join them.
func (s *Sender) postpone(ctx context.Context, list []DeliveryRow, at job.Micros) error {
	ids := make([]int64, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	return s.DB.Tx(ctx, func(tx *sql.Tx) error { return postpone(tx, ids, at) })
}

// earlier returns when an earlier unsent message of the same alert is tried next; zero: there is
// no such message. A resolving event that arrived before the opening event would find no incident,
// and the incident would then stay open.
func (s *Sender) earlier(ctx context.Context, d *DeliveryRow) (job.Micros, error) {
	var items []job.AlertItem
	if json.Unmarshal([]byte(d.Items), &items) != nil || len(items) == 0 || items[0].AlertID == "" {
		return 0, nil
	}
	return earlierDelivery(s.DB.Reader(ctx), d, `"alert_id":"`+items[0].AlertID+`"`)
}

// open reads everything needed to send a message. If the message must not be sent, it returns a
// verdict.
func (s *Sender) open(ctx context.Context, d *DeliveryRow, now job.Micros) (*letter, *verdict, error) {
	l := &letter{DeliveryRow: *d}
	suppressed := func(why string) *verdict { return &verdict{said: why, state: DeliverySuppressed} }

	// Too old?
	switch old := job.Micros(tooOld.Microseconds()); {
	case d.Attempts > 0 && now-d.Created > old:
		said := "it was tried for " + tooOld.String() + "; the last error: " + d.Said
		return l, &verdict{said: said, state: DeliveryFailed}, nil
	case d.Attempts == 0 && now-d.Updated > old: // the age counts from the latest event that joined the message
		return l, suppressed("it waited longer than " + tooOld.String()), nil
	}

	if d.Kind == DeliveryPing {
		jobs, err := s.DB.AlertJobs(ctx, []int64{d.JobID})
		if err != nil {
			return nil, nil, err
		}
		if l.job = jobs[d.JobID]; l.job.Ping == nil || l.job.Gone {
			return l, suppressed("the job no longer has a ping"), nil
		}
		// A later due time has replaced a late ping: its old result would look new.
		newer, err := newerPing(s.DB.Reader(ctx), d)
		if newer {
			return l, suppressed("a later due time replaced it"), nil
		}
		return l, nil, err
	}

	row, err := definitionByID(s.DB.Reader(ctx), ChannelTable, d.ChannelID)
	if errors.Is(err, sql.ErrNotFound) {
		return l, suppressed("the channel was deleted"), nil
	}
	if err != nil {
		return nil, nil, err
	}

	if l.channel, err = DecodeChannel(&row); err != nil {
		return l, suppressed("the channel cannot be read: " + err.Error()), nil
	}
	if l.channel.Disabled {
		return l, suppressed("the channel is disabled"), nil
	}

	if d.Kind == DeliveryBeat && !upToDate(d, now, &l.channel) {
		return l, suppressed("it is outdated: it is older than " + l.channel.Every.String()), nil
	}

	if d.RuleID == 0 {
		return l, nil, nil
	}
	// A deleted rule has no templates; the built-in text is used.
	if row, err = definitionByID(s.DB.Reader(ctx), RuleTable, d.RuleID); err == nil {
		l.rule, _ = DecodeRule(&row)
	} else if !errors.Is(err, sql.ErrNotFound) {
		return nil, nil, err
	}
	return l, nil, nil
}

// upToDate reports whether a heartbeat still describes the state of the cluster at an instant.
func upToDate(d *DeliveryRow, at job.Micros, c *job.AlertChannel) bool {
	return at-d.Created < micros(c.Every)
}

// settle records the result of a try, even while the node stops.
func (s *Sender) settle(ctx context.Context, l *letter, v *verdict) error {
	stopping := ctx.Err() != nil
	ctx = context.WithoutCancel(ctx)
	now := s.Session.Now()
	state, next, said := DeliverySent, now, v.said

	switch {
	case v.state != DeliveryPending:
		state = v.state
	case v.err == nil:
	case stopping:
		state, said = DeliveryPending, "the node stopped while sending it: "+v.err.Error()
	case v.final || l.Attempts >= maxTries:
		state, said = DeliveryFailed, v.err.Error()
	default:
		state, said = DeliveryPending, v.err.Error()
		next = now.Add(max(pauses[min(l.Attempts, len(pauses))-1], min(v.after, 10*time.Minute)))
		if l.Kind == DeliveryBeat && !upToDate(&l.DeliveryRow, next, &l.channel) {
			state, next = DeliveryFailed, now // the next heartbeat exists by then
		}
	}
	if state == DeliveryFailed {
		s.Log.Warn("an alert message could not be sent", "message", l.ID, "kind", l.Kind,
			"channel", l.Channel, "attempts", l.Attempts, "error", said)
	}

	var err error
	for try := range 3 { // if all tries fail, the message is sent again after a while
		if try > 0 {
			time.Sleep(200 * time.Millisecond)
		}

		err = s.DB.Tx(ctx, func(tx *sql.Tx) error {
			if _, err := settleDelivery(tx, &l.DeliveryRow, s.Session.ID(), state, next, now, said); err != nil {
				return err
			}
			for range l.templates {
				if err := templateFailed(tx); err != nil {
					return err
				}
			}
			return nil
		})

		if err == nil {
			for _, why := range l.templates {
				s.Log.Warn("an alert template failed, using the built-in text", "error", why)
			}
			return nil
		}
	}
	return fmt.Errorf("settle: %w", err)
}
