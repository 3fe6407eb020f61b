package schema

// seen is which members and elements of one value have been evaluated, for
// unevaluatedProperties and unevaluatedItems. A nil *seen keeps nothing.
type seen struct {
	names map[string]struct{}
	below int // every element before this index
	items map[int]struct{}
}

func (s *seen) addName(name string) {
	if s == nil {
		return
	}
	if s.names == nil {
		s.names = map[string]struct{}{}
	}
	s.names[name] = struct{}{}
}

func (s *seen) addItemsBelow(n int) {
	if s != nil {
		s.below = max(s.below, n)
	}
}

func (s *seen) addItem(i int) {
	if s == nil {
		return
	}
	if s.items == nil {
		s.items = map[int]struct{}{}
	}
	s.items[i] = struct{}{}
}

func (s *seen) hasName(name string) bool {
	_, ok := s.names[name]
	return ok
}

func (s *seen) hasItem(i int) bool {
	_, ok := s.items[i]
	return ok || i < s.below
}

func (s *seen) merge(o *seen) {
	if s == nil || o == nil {
		return
	}
	for name := range o.names {
		s.addName(name)
	}
	for i := range o.items {
		s.addItem(i)
	}
	s.below = max(s.below, o.below)
}
