package protocol

// Hole is something that the code does not do, and what follows from that.
type Hole struct {
	Name    string
	Without func(*Rules) // takes it away from rules that have it
}

// Holes are the known ones.
func Holes() []Hole { return nil }
