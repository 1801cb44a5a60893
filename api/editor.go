package api

// EditorOf makes what [Config] wants of a function that returns a pointer, which is nil while
// nothing may be changed: an interface around such a pointer would not be nil. With a node it is
// EditorOf(n.Editor).
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
