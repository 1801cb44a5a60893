package api

// EditorOf turns a function that returns a pointer into the Editor of a [Config]. The pointer is
// nil while the node may not change anything. EditorOf then returns a nil Editor, not an interface
// that holds a nil pointer. For a node n, write EditorOf(n.Editor).
func EditorOf[T any, P interface {
	*T
	Editor
}](f func() P) func() Editor {
	return func() Editor {
		if e := f(); e != nil {
			return e
		}
		return nil
	}
}
