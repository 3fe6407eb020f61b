package guess

import "github.com/holdfast-dev/holdfast/internal/redact/char"

// streetAhead returns the end of the street that begins behind the number
// [i, e), or 0: "221B Baker Street", "12 bis, rue de la Paix".
func (x *reader) streetAhead(i, e int) int {
	e = x.houseEnd(e)
	v := e
	for _, word := range [...]string{" bis", " ter"} {
		if x.Has(v, word) {
			v += len(word)
		}
	}
	if v < x.hi && x.S[v] == ',' {
		v++
	}
	if v >= x.hi || x.S[v] != ' ' {
		return 0
	}
	v++
	if end := x.frenchStreet(v); end > 0 {
		return end
	}
	small := 0
	for n := 0; n < 5 && v < x.hi; n++ {
		w := min(x.End(v, maxNameWord, char.Word), x.hi)
		if w == v {
			return 0
		}
		if n > 0 || string(x.S[v:w]) == "Broadway" {
			k := streetWord(x.S[v:w])
			if (k == streetAlways || k == streetCapital && char.Class[x.S[v]]&char.Upper != 0) && (small == 0 ||
				small == 1 && k == streetAlways && x.placeWord(i)) {
				if x.counted(i) || x.isYear(i) && !x.placeWord(i) && !x.Has(w, ",") {
					return 0
				}
				if w < x.hi && x.S[w] == '.' && w-v <= 4 {
					w++
				}
				return x.direction(w)
			}
		}
		if !capital(x.S, v) && !ordinal(x.S[v:w]) {
			small++
		}
		v = w
		if v < x.hi && (x.S[v] == '.' || x.S[v] == '\'') && n < 3 {
			v++
			if v < x.hi && x.S[v-1] == '\'' {
				v = min(x.End(v, maxNameWord, char.Word), x.hi)
			}
		}
		if v >= x.hi || x.S[v] != ' ' {
			return 0
		}
		v++
	}
	return 0
}

// isYear says whether the number at i is a year of this or the last century.
func (x *reader) isYear(i int) bool {
	return char.DigitsFrom(x.S, i, 5) == 4 && (x.Has(i, "19") || x.Has(i, "20"))
}

// counted says whether the word before the number at i counts something else:
// a section, a version.
func (x *reader) counted(i int) bool {
	b, e := x.wordBefore(i, 3)
	var buf [24]byte
	switch string(smallCased(&buf, x.S[b:e])) {
	case "section", "chapter", "step", "table", "figure", "fig", "page", "version", "level", "part", "line", "phase", "episode", "season", "article",
		"rule", "item", "issue", "task", "day", "week", "error", "port", "stage", "round", "tier", "sprint", "release", "top", "option", "case", "scene", "act":
		return true
	}
	return false
}

// direction steps over "NW" and the like behind a street.
func (x *reader) direction(i int) int {
	if i < x.hi && x.S[i] == ' ' {
		e := min(x.End(i+1, 3, char.Upper), x.hi)
		if !x.Is(e, char.Word) && !x.Is(e, char.Digit) {
			switch string(x.S[i+1 : e]) {
			case "N", "S", "E", "W", "NE", "NW", "SE", "SW":
				return e
			}
		}
	}
	return i
}

func ordinal(w []byte) bool {
	n := char.DigitsFrom(w, 0, 4)
	if n == 0 || n > 3 || len(w) != n+2 {
		return false
	}
	switch string(w[n:]) {
	case "st", "nd", "rd", "th":
		return true
	}
	return false
}

// frenchStreet returns the end of "rue de la Paix" at v, or 0.
func (x *reader) frenchStreet(v int) int {
	w := min(x.End(v, maxNameWord, char.Word), x.hi)
	var buf [24]byte
	if !frenchStreetWord(smallCased(&buf, x.S[v:w])) {
		return 0
	}
	end, caps := 0, 0
	for n := 0; n < 6 && w < x.hi && (x.S[w] == ' ' || x.S[w] == '\'' || x.S[w] == '-' || x.S[w] == '.'); n++ {
		b := w + 1
		w = min(x.End(b, maxNameWord, char.Word), x.hi)
		if w == b {
			break
		}
		if capital(x.S, b) {
			caps++
			end = w
		} else if !smallFrench(x.S[b:w]) {
			break
		}
	}
	if caps == 0 {
		return 0
	}
	return end
}

func smallFrench(w []byte) bool {
	switch string(w) {
	case "faubourg", "de", "du", "des", "la", "le", "les", "l", "d", "et", "en", "sur", "sous", "aux", "au", "saint", "sainte":
		return true
	}
	return false
}

// streetBehind returns where the street begins that ends before the number at
// i, or -1: "Hauptstraße 12", "Berliner Str. 5", "Am Alten Markt 3".
func (x *reader) streetBehind(i int) int {
	if i-x.lo < 6 || x.S[i-1] != ' ' {
		return -1
	}
	e := i - 1
	dot := x.S[e-1] == '.'
	if dot {
		e--
	}
	b := e
	for b > x.lo && e-b < 40 && (char.Class[x.S[b-1]]&char.Word != 0 || x.S[b-1] == '-') {
		b--
	}
	if b >= e || !capital(x.S, b) && x.S[b] != 's' {
		return -1
	}
	switch alone, ok := germanStreet(x.S[b:e], dot); {
	case !ok:
		return -1
	case !alone:
		return b
	}
	// The word stands alone: the one before it belongs to it.
	start, at := -1, b
	for n := 0; n < 3 && at-1 > x.lo && x.S[at-1] == ' '; n++ {
		p := at - 1
		for p > x.lo && at-p < 24 && (char.Class[x.S[p-1]]&char.Word != 0 || x.S[p-1] == '-') {
			p--
		}
		if p == at-1 {
			break
		}
		if capital(x.S, p) {
			start = p
		} else if !smallGerman(x.S[p : at-1]) {
			break
		}
		at = p
	}
	return start
}

// beforeCode returns where the street begins whose house number stands at
// [i, e), where five digits and a town follow ("Zeil 5, 60313 Frankfurt"), or
// -1: no word for a street is needed then.
func (x *reader) beforeCode(i, e int) int {
	v := e
	if v < x.hi && x.S[v] == ',' {
		v++
	}
	if v = x.End(v, 2, char.Space); v == e || v >= x.hi {
		return -1
	}
	if x.Has(v, "D-") {
		v += 2
	}
	if char.DigitsFrom(x.S, v, 6) != 5 || !x.Has(v+5, " ") || v+6 >= x.hi || !capital(x.S, v+6) {
		return -1
	}
	start, at := -1, i
	for n := 0; n < 4 && at-1 > x.lo && x.S[at-1] == ' '; n++ {
		p := at - 1
		for p > x.lo && at-p < 32 && (char.Class[x.S[p-1]]&char.Word != 0 || x.S[p-1] == '-' || x.S[p-1] == '.' &&
			p == at-1) {
			p--
		}
		if p == at-1 {
			break
		}
		if capital(x.S, p) {
			start = p
		} else if !smallGerman(x.S[p : at-1]) {
			break
		}
		at = p
	}
	return start
}

func smallGerman(w []byte) bool {
	switch string(w) {
	case "den", "der", "dem", "am", "an", "im", "alten", "neuen":
		return true
	}
	return false
}

// germanStreet says whether w is a German street, and whether only its last
// word ("Straße", "Allee").
func germanStreet(w []byte, dot bool) (alone, ok bool) {
	var buf [40]byte
	if len(w) > len(buf) {
		return false, false
	}
	for k, c := range w {
		buf[k] = char.ToLower(c)
	}
	l := string(buf[:len(w)])
	for _, end := range [...]string{"straße", "strasse", "allee", "gasse", "platz", "weg", "ring", "damm", "ufer", "chaussee", "steig", "stieg", "markt", "graben", "str"} {
		if len(l) < len(end) || l[len(l)-len(end):] != end || end == "str" && !dot && len(l) < 7 {
			continue
		}
		if len(l) == len(end) {
			return true, true
		}
		hyphen := l[len(l)-len(end)-1] == '-'
		switch end {
		case "ring", "weg", "markt", "platz", "damm", "ufer", "steig", "graben", "stieg": // words end in these too
			if !hyphen && len(l) < len(end)+3 || notStreet(l) {
				return false, false
			}
		}
		return false, len(l)-len(end) >= 2
	}
	return false, false
}

func notStreet(l string) bool {
	switch l {
	case "spring", "string", "monitoring", "engineering", "during", "supermarkt", "arbeitsmarkt", "marktplatz", "arbeitsplatz", "keyring", "offspring",
		"substring", "tostring", "docstring", "arbeitsweg", "ausweg", "einstieg", "anstieg", "umstieg", "abstieg", "ausstieg", "aufstieg", "hering", "refactoring":
		return true
	}
	return len(l) > 5 && l[len(l)-4:] == "ring" && l[len(l)-5] != 't' && l[len(l)-5] != 'd' && l[len(l)-5] != 's' &&
		l[len(l)-5] != 'n' && l[len(l)-5] != '-'
}
