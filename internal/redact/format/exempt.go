package format

import "strings"

// exemptions are the keys and paths that a record passes unread, so that they
// are found without a look at all of them.
type exemptions struct {
	list  []string
	heads [64]uint8  // one more than a key's place in list; 0 for none
	next  [128]uint8 // the same, of the next key with the same head
	paths []string   // from the first of them on
}

// exempting makes them of list.
func (x *exemptions) exempting(list []string) {
	x.list = list
	for i, k := range list {
		if x.paths == nil && strings.IndexByte(k, '.') >= 0 {
			x.paths = list[i:]
		}
		if i < len(x.next) {
			h := &x.heads[exemptHead(k)]
			x.next[i], *h = *h, uint8(i+1)
		}
	}
}

func exemptHead[T string | []byte](name T) uint8 {
	if len(name) == 0 {
		return 0
	}
	return uint8(len(name)*7+int(name[0])+int(name[len(name)-1])*3) & 63
}

// passes says whether a name is one of the keys.
func (x *exemptions) passes(name []byte) bool {
	for i := x.heads[exemptHead(name)]; i > 0; i = x.next[i-1] {
		if x.list[i-1] == string(name) {
			return true
		}
	}
	for _, k := range x.list[min(len(x.list), len(x.next)):] {
		if k == string(name) {
			return true
		}
	}
	return false
}

// within is the beginning, with its dot, of the paths that begin with a name, ""
// for none.
func (x *exemptions) within(name []byte) string {
	begin := ""
	for _, k := range x.paths {
		if len(k) > len(name) && k[len(name)] == '.' && k[:len(name)] == string(name) {
			begin = k[:len(name)+1]
		}
	}
	return begin
}

// holds reports whether a name follows begin in one of the paths.
func (x *exemptions) holds(begin string, name []byte) bool {
	for _, k := range x.paths {
		if begin != "" && len(k) > len(begin) && k[:len(begin)] == begin && k[len(begin):] == string(name) {
			return true
		}
	}
	return false
}
