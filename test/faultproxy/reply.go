package faultproxy

// A reply is still owed by the server.
type reply struct {
	sequence byte    // of its first packet
	prepares string  // the statement whose preparation it confirms
	firing   *firing // the fault that waits for it
	instead  []byte  // the packet to deliver in its place

	packets int // packets that the server had sent when the command left
}

// replies tracks the server's packets just closely enough to know where replies begin.
type replies struct {
	owed    []*reply
	packets int
	last    byte // sequence number of the last packet
}

// expect notes that the command answered by r is about to leave.
func (s *replies) expect(r *reply) {
	r.packets = s.packets
	s.owed = append(s.owed, r)
}

// begins takes the sequence number of the server's next packet. It returns the reply that begins
// with this packet, or nil if a reply continues.
//
// A reply's numbers follow its command's number, so the right number marks a beginning. There is
// one exception: a long reply counts past 255 and reaches the same number again. That matters only
// for a client that sends its next command before it has read the reply to the last one; otherwise
// no packet arrives in between.
func (s *replies) begins(sequence byte) *reply {
	goesOn := sequence == s.last+1
	before := s.packets
	s.last = sequence
	s.packets++
	if len(s.owed) == 0 {
		return nil
	}

	r := s.owed[0]
	if sequence != r.sequence || goesOn && before > r.packets {
		return nil
	}
	s.owed = s.owed[1:]
	return r
}
