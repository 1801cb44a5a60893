package node

import "go-crontab/internal/loop"

// wakes are the wakes of the loops of a session. They are made before the stages, so a stage can
// wake another stage that is made later.
type wakes struct {
	claimer     loop.Wake // a cursor may have moved into the past: claim at once
	starter     loop.Wake // a slot is free
	overdue     loop.Wake // runs became idle, and may be due
	wishes      loop.Wake // this node has written that a run must be killed
	compensator loop.Wake // the executing set has dropped a run whose row this session still has
	sessions    loop.Wake // sessions have come, gone or changed
	reaper      loop.Wake // a session was buried: its runs must be ended
	sender      loop.Wake // there is a new alert message
}

func newWakes() wakes {
	return wakes{
		claimer:     loop.NewWake(),
		starter:     loop.NewWake(),
		overdue:     loop.NewWake(),
		wishes:      loop.NewWake(),
		compensator: loop.NewWake(),
		sessions:    loop.NewWake(),
		reaper:      loop.NewWake(),
		sender:      loop.NewWake(),
	}
}
