package faultproxy

// A reply is one the server owes.
type reply struct {
	sequence byte    // its first packet carries this number
	prepares string  // the statement it confirms the preparation of
	firing   *firing // the fault that waits for it
	instead  []byte  // the packet to deliver in its place

	packets int // how many the server had sent when the command left
}

// replies follows the server's packets just far enough to tell where replies begin.
type replies struct {
	owed    []*reply
	packets int
	last    byte // sequence number of the last packet
}

// expect notes that the command r answers is about to leave.
func (s *replies) expect(r *reply) {
	r.packets = s.packets
	s.owed = append(s.owed, r)
}

// begins takes the sequence number of the server's next packet and returns the reply that begins with it, or nil if
// a reply just goes on.
//
// A reply's numbers go on from its command's, so the right number is a beginning, with one exception: a long reply
// counts through 255 and comes by the same number again. That can happen only under the eyes of a client that sends
// its next command before it has read the reply to the last one; else nothing arrives in between.
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
