package faultproxy

import (
	"bufio"
	"net"
)

// readClient reads from the client, command by command.
func (l *link) readClient() {
	defer close(l.left)
	r := bufio.NewReader(l.client)
	for l.ctx.Err() == nil {
		m, err := readMessage(r)
		if err != nil {
			l.up.send(chunk{last: true})
			return
		}

		if c, ok := l.dialogue.parse(m); ok {
			l.command(c, m)
		} else {
			l.up.send(chunk{data: m.raw})
		}
	}
}

// command applies the rules to a command and forwards it.
func (l *link) command(c Command, m message) {
	l.proxy.observe(c)
	if !c.isAnswered() {
		l.up.send(chunk{data: m.raw})
		return
	}

	r := &reply{sequence: m.last + 1}
	if c.Op == Prepare {
		r.prepares = c.SQL
	}

	out := chunk{data: m.raw}

	if f := l.proxy.findRule(c); f != nil {
		l.firings = append(l.firings, f)
		r.firing = f

		switch f.kind {
		case cutBefore:
			f.hit() // before the reset, so that a client with its error already finds it counted
			l.reset()
			return
		case holdBefore:
			out.held = f
			f.hit()
		case answer:
			r.instead = makeError(r.sequence, f.code, f.sqlState, f.text)
			r.sequence = 1
			out.data = l.substitute(f)
		}
	}

	if r.instead == nil {
		l.dialogue.forwarded(c)
	}

	l.mu.Lock()
	l.replies.expect(r)
	l.mu.Unlock()
	l.up.send(out)
}

// substitute returns the packet that the server gets in place of a command that is answered with an
// error. Its reply marks the turn of the error, after the replies to all earlier commands.
func (l *link) substitute(f *firing) []byte {
	if !f.rollsBack() {
		return makePacket(0, []byte{byte(Ping)})
	}
	l.dialogue.tx = nil
	return makePacket(0, append([]byte{byte(Query)}, "ROLLBACK"...))
}

// readServer reads from the server, packet by packet.
func (l *link) readServer(server net.Conn) {
	const enough = 64 << 10
	r := bufio.NewReaderSize(server, enough)
	var batch []byte // packets that arrived together travel on together

	flush := func() {
		if len(batch) > 0 {
			l.down.send(chunk{data: batch})
			batch = nil
		}
	}

	for first := true; l.ctx.Err() == nil; first = false {
		packet, err := readPacket(r)
		if err != nil {
			flush()
			l.down.send(chunk{last: true})
			return
		}

		if first {
			plainGreeting(packet)
		}

		l.mu.Lock()
		answered := l.replies.begins(packet[3])
		l.mu.Unlock()

		if answered != nil {
			var held *firing
			if packet, held = l.answered(answered, packet); held != nil {
				flush()
				l.down.send(chunk{data: packet, held: held})
				continue
			}
		}

		batch = append(batch, packet...)
		if r.Buffered() == 0 || len(batch) >= enough {
			flush()
		}
	}
}

// answered applies the rule to the first packet of a reply. It returns the packet to deliver, and
// the firing that holds it back.
func (l *link) answered(r *reply, packet []byte) ([]byte, *firing) {
	if r.prepares != "" {
		l.dialogue.learn(r.prepares, packet)
	}

	f := r.firing
	if f == nil {
		return packet, nil
	}

	switch f.kind {
	case cutAfter:
		f.hit()
		l.reset()
	case hold:
		f.hit()
		return packet, f // the pump settles it
	case answer:
		packet = r.instead
		f.hit()
	}

	f.settle()
	return packet, nil
}
