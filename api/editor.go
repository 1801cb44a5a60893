package api

// EditorOf adapts a function that returns a pointer, nil while the node may not change anything, to
// [Config]. Without it the Editor interface around a nil pointer would not be nil. With a node it
// is EditorOf(n.Editor).
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
