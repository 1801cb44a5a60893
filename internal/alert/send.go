package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

const (
	sendEvery  = time.Second
	sendCalm   = 2 * time.Second
	dueAtOnce  = 200
	maxTries   = 8
	tooOld     = 24 * time.Hour // of a message that was not sent
	settleTime = 15 * time.Second
	pingLanes  = 32 // that are busy at once: seven hosts that hang leave room for others
	pingTime   = 10 * time.Second
)

// pauses are from a try that failed to the next.
var pauses = []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute}

// Sender sends the messages that are due. All nodes do it: each claims what it sends.
type Sender struct {
	DB      *read.DB
	Session Session
	Outside *Outside
	Nothing func() bool // tells that no message was there to be sent a moment ago; nil: nobody knows
	Log     *slog.Logger

	wake  chan struct{}
	begin sync.Once
	mu    sync.Mutex
	busy  map[lane]bool // lanes in which something is sent
	lanes sync.WaitGroup
}

func (s *Sender) init() {
	s.begin.Do(func() { s.wake, s.busy = make(chan struct{}, 1), map[lane]bool{} })
}

// Wake has it look at once.
func (s *Sender) Wake() {
	s.init()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run sends until ctx ends. What is being sent then is put back, for others to send.
func (s *Sender) Run(ctx context.Context) error {
	s.init()
	defer s.lanes.Wait()
	wait := sendCalm
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.wake:
		case <-time.After(wait):
			if s.Nothing != nil && s.Nothing() {
				wait = sendCalm
				continue
			}
		}
		if wait = sendCalm; !s.Session.Fresh() {
			continue
		}
		n, err := s.look(ctx, s.Session.Now())
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("cannot read messages of alerts, trying again", "error", err)
		}
		if n > 0 {
			wait = sendEvery
		}
	}
}

// lane is what is told by one goroutine at a time: a channel, or some of the pings to a host.
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

// busyLanes are the lanes in which something is sent. The caller holds mu.
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

// look has each lane begin that has something to send and is not at it. It tells how much there is to do.
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

// lane sends some messages, one after the other.
func (s *Sender) lane(ctx context.Context, list []DeliveryRow) {
	defer func() {
		if r := recover(); r != nil { // one bad message never stops a node
			s.Log.Error("a message of alerts panics", "message", list[0].ID, "panic", r)
		}
	}()
	for i := range list {
		if ctx.Err() != nil || !s.Session.Fresh() {
			return
		}
		more, err := s.deliver(ctx, &list[i], list[i:])
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("cannot send a message of alerts, trying again", "message", list[i].ID, "error", err)
		}
		if !more {
			return
		}
	}
}

// letter is a message with all that it takes to send it.
type letter struct {
	DeliveryRow
	channel   job.AlertChannel
	rule      job.AlertRule
	job       job.AlertJob
	items     []job.AlertItem
	templates []error // why some failed
}

// verdict is what became of a try.
type verdict struct {
	said  string
	err   error
	final bool          // it is not worth another try
	after time.Duration // when the other side wants the next one
	state DeliveryState
}

// errLater tells that a channel has got as many messages as it takes in a minute.
var errLater = errors.New("later")

// deliver claims, sends and settles a message. more tells whether the lane is to go on.
func (s *Sender) deliver(ctx context.Context, seen *DeliveryRow, rest []DeliveryRow) (more bool, err error) {
	now := s.Session.Now()
	l, early, err := s.open(ctx, seen, now)
	if err != nil {
		return true, err
	}
	if early == nil && l.channel.Type == job.ChannelPagerDuty {
		at, err := s.behind(ctx, seen)
		if err != nil {
			return true, err
		}
		if at != 0 {
			return true, s.postpone(ctx, rest[:1], max(at, now.Add(time.Second)))
		}
	}
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
		return true, nil // somebody else was faster
	case err != nil:
		return true, err // if it was claimed all the same, it is free again after a while
	}
	// If we die from here on, the message is sent once more, with the same key.
	v := early
	if v == nil {
		_ = json.Unmarshal([]byte(l.Items), &l.items) // what a hand wrote there and cannot be read counts as none
		bounded, cancel := context.WithTimeout(ctx, timeout)
		sent := s.Outside.send(bounded, l)
		cancel()
		v = &sent
	}
	return true, s.settle(ctx, l, v)
}

// postpone has the messages of a lane wait. What is found meanwhile becomes part of them.
func (s *Sender) postpone(ctx context.Context, list []DeliveryRow, at job.Micros) error {
	ids := make([]int64, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	return s.DB.Tx(ctx, func(tx *sql.Tx) error { return postpone(tx, ids, at) })
}

// behind returns when an earlier message of the same alert is tried next that is neither sent nor given up; zero: there is
// none, nor will there be. What resolves an incident finds none if it comes before what opens it, which then stays open.
func (s *Sender) behind(ctx context.Context, d *DeliveryRow) (job.Micros, error) {
	var items []job.AlertItem
	if json.Unmarshal([]byte(d.Items), &items) != nil || len(items) == 0 || items[0].AlertID == "" {
		return 0, nil
	}
	return earlierDelivery(s.DB.Reader(ctx), d, `"alert_id":"`+items[0].AlertID+`"`)
}

// open reads what it takes to send a message, or says what becomes of it without.
func (s *Sender) open(ctx context.Context, d *DeliveryRow, now job.Micros) (*letter, *verdict, error) {
	l := &letter{DeliveryRow: *d}
	suppressed := func(why string) *verdict { return &verdict{said: why, state: DeliverySuppressed} }
	switch old := job.Micros(tooOld.Microseconds()); {
	case d.Attempts > 0 && now-d.Created > old:
		return l, &verdict{said: "it was tried for " + tooOld.String() + "; the last time: " + d.Said, state: DeliveryFailed}, nil
	case d.Attempts == 0 && now-d.Updated > old: // what became part of it since is not old
		return l, suppressed("it waited for longer than " + tooOld.String()), nil
	}
	if d.Kind == DeliveryPing {
		jobs, err := s.DB.AlertJobs(ctx, []int64{d.JobID})
		if err != nil {
			return nil, nil, err
		}
		if l.job = jobs[d.JobID]; l.job.Ping == nil || l.job.Gone {
			return l, suppressed("the job has no ping any more"), nil
		}
		// One that is tried again, or whose node died, would tell how things were as if it was news.
		newer, err := newerPing(s.DB.Reader(ctx), d)
		if newer {
			return l, suppressed("a later due time counts"), nil
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
	if d.Kind == DeliveryBeat && !news(d, now, &l.channel) {
		return l, suppressed("it tells nothing of now: it is older than " + l.channel.Every.String()), nil
	}
	if d.RuleID == 0 {
		return l, nil, nil
	}
	// Of a rule that is gone there are no templates.
	if row, err = definitionByID(s.DB.Reader(ctx), RuleTable, d.RuleID); err == nil {
		l.rule, _ = DecodeRule(&row)
	} else if !errors.Is(err, sql.ErrNotFound) {
		return nil, nil, err
	}
	return l, nil, nil
}

// news tells whether a heartbeat still tells how things are at an instant.
func news(d *DeliveryRow, at job.Micros, c *job.AlertChannel) bool {
	return at-d.Created < micros(c.Every)
}

// settle writes what became of a try. It does so also while the node stops.
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
		state, said = DeliveryPending, "the node stopped meanwhile: "+v.err.Error()
	case v.final || l.Attempts >= maxTries:
		state, said = DeliveryFailed, v.err.Error()
	default:
		state, said = DeliveryPending, v.err.Error()
		next = now.Add(max(pauses[min(l.Attempts, len(pauses))-1], min(v.after, 10*time.Minute)))
		if l.Kind == DeliveryBeat && !news(&l.DeliveryRow, next, &l.channel) {
			state, next = DeliveryFailed, now // another is made by then
		}
	}
	if state == DeliveryFailed {
		s.Log.Warn("a message of alerts could not be sent", "message", l.ID, "kind", l.Kind, "channel", l.Channel, "attempts", l.Attempts, "error", said)
	}
	var err error
	for try := range 3 { // if it fails for good, the message is sent once more after a while
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
				s.Log.Warn("a template of alerts failed, and the built-in text took its place", "error", why)
			}
			return nil
		}
	}
	return fmt.Errorf("settle: %w", err)
}
