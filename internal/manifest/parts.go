package manifest

import "slices"

// Parts splits a set into parts that the server accepts. Each part has at most about size bytes,
// and at most most[list] objects of a list. Parts keeps the order of the lists, so an object comes
// before the objects that name it. Jobs come last, so that pauses hold them from the start.
//
// A part also repeats the objects of earlier parts that it names, so that it is valid on its own.
// A set within the limits is returned unchanged, as the only part.
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
		return []*Set{s}, nil // keeps empty lists
	}
	return p.parts, nil
}

// object identifies an object by its list and name.
type object struct{ list, name string }

type parting struct {
	most  map[string]int
	size  int
	named map[object]*Value

	// The part that is being filled, the last in parts.
	parts []*Set
	has   map[*Value]bool
	bytes int
}

func (p *parting) open() {
	p.parts = append(p.parts, &Set{lists: map[string][]*Value{}})
	p.has, p.bytes = map[*Value]bool{}, 0
}

// add adds an object with all objects that it names. If they do not fit, it opens a new part.
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

// item is an object to add to a part.
type item struct {
	list  string
	value *Value
	bytes int
}

// try lists an object and the objects that it names, except those already in the part.
func (p *parting) try(list string, v *Value) ([]item, error) {
	var out []item
	for _, o := range v.names(list) {
		n := p.named[o]
		if n == nil || p.has[n] || slices.ContainsFunc(out, func(i item) bool { return i.value == n }) {
			continue // not in the files: it is on the cluster, or the server reports it as missing
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

// names returns the objects that a value of this list refers to.
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
