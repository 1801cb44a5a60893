package manifest

import "slices"

// Parts cuts a set into such as are taken at once: of no list more than most has, and about size bytes. The order of
// the lists stays, so that what a later one names is there, and jobs come last, after the pauses that are to hold them.
//
// Each part has once more what is named in it and stood in an earlier one, so it can be looked at by itself. A set of
// which nothing is too much is its only part.
func (s *Set) Parts(most map[string]int, size int) ([]*Set, error) {
	p := &parting{most: most, size: size, named: map[object]*Value{}}
	for list, values := range s.lists {
		for _, v := range values {
			p.named[object{list, v.text("name")}] = v
		}
	}

	p.open()
	for _, list := range listNames {
		for _, v := range s.lists[list] {
			if err := p.add(list, v); err != nil {
				return nil, err
			}
		}
	}

	if len(p.parts) == 1 {
		return []*Set{s}, nil // with the lists that are empty, too
	}
	return p.parts, nil
}

// object is one of a list, by its name.
type object struct{ list, name string }

type parting struct {
	most  map[string]int
	size  int
	named map[object]*Value

	// Of the part that is being filled, the last one.
	parts []*Set
	has   map[*Value]bool
	bytes int
}

func (p *parting) open() {
	p.parts = append(p.parts, &Set{lists: map[string][]*Value{}})
	p.has, p.bytes = map[*Value]bool{}, 0
}

// add takes an object with all that it names, into a new part if there is no room for them.
func (p *parting) add(list string, v *Value) error {
	if p.has[v] {
		return nil
	}

	into, err := p.try(list, v)
	if err != nil {
		return err
	}

	if part := p.parts[len(p.parts)-1]; !p.fits(into) && len(part.lists) > 0 {
		p.open()
		if into, err = p.try(list, v); err != nil {
			return err
		}
	}

	part := p.parts[len(p.parts)-1]
	for _, i := range into {
		part.lists[i.list] = append(part.lists[i.list], i.value)
		p.has[i.value], p.bytes = true, p.bytes+i.bytes
	}
	return nil
}

// item is what a part is to have further.
type item struct {
	list  string
	value *Value
	bytes int
}

// try lists what a part does not have yet of an object and all that it names.
func (p *parting) try(list string, v *Value) ([]item, error) {
	var out []item
	for _, o := range v.names(list) {
		n := p.named[o]
		if n == nil || p.has[n] || slices.ContainsFunc(out, func(i item) bool { return i.value == n }) {
			continue // what is in no file is on the cluster, or the server says that it is missing
		}
		text, err := n.MarshalJSON()
		if err != nil {
			return nil, err
		}
		out = append(out, item{o.list, n, len(text)})
	}

	text, err := v.MarshalJSON()
	return append(out, item{list, v, len(text)}), err
}

func (p *parting) fits(into []item) bool {
	lists := p.parts[len(p.parts)-1].lists
	more, bytes := map[string]int{}, p.bytes
	for _, i := range into {
		more[i.list]++
		bytes += i.bytes
	}

	for list, n := range more {
		if most, bounded := p.most[list]; bounded && len(lists[list])+n > most {
			return false
		}
	}
	return bytes <= p.size
}

// names are the objects that one of a list names.
func (v *Value) names(list string) (out []object) {
	add := func(list, field string) {
		f := v.field(field)
		if f == nil {
			return
		}
		for _, named := range append(f.items, f) {
			if name, ok := named.scalar.(string); ok && name != "" {
				out = append(out, object{list, name})
			}
		}
	}

	switch list {
	case "jobs":
		add("groups", "group")
		add("calendars", "calendars")
	case "rules":
		add("channels", "channels")
	}

	return out
}
