package api

// route is a line of the table of what there is.
type route struct {
	method  string
	pattern string
	may     access
	handler handler
	doc     *operation
}

// operation is what the reference says of a route. Only query parameters that it names are taken.
type operation struct {
	id    string // clients make names of it: it never changes
	query []parameter
}

func (rt *route) query() []parameter {
	if rt.doc == nil {
		return nil
	}
	return rt.doc.query
}
