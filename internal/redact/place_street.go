package redact

// streetAhead returns the end of the street that begins behind the number
// [i, e), or 0: "221B Baker Street", "12 bis, rue de la Paix".
func (x *reader) streetAhead(i, e int) int {
	e = x.houseEnd(e)
	v := e
	for _, word := range [...]string{" bis", " ter"} {
		if x.has(v, word) {
			v += len(word)
		}
	}
	if v < x.hi && x.s[v] == ',' {
		v++
	}
	if v >= x.hi || x.s[v] != ' ' {
		return 0
	}
	v++
	if end := x.frenchStreet(v); end > 0 {
		return end
	}
	small := 0
	for n := 0; n < 5 && v < x.hi; n++ {
		w := min(x.end(v, maxNameWord, isWord), x.hi)
		if w == v {
			return 0
		}
		if n > 0 || string(x.s[v:w]) == "Broadway" {
			k := streetWord(x.s[v:w])
			if (k == streetAlways || k == streetCapital && class[x.s[v]]&isUpper != 0) && (small == 0 || small == 1 && k == streetAlways && x.placeWord(i)) {
				if x.counted(i) || x.isYear(i) && !x.placeWord(i) && !x.has(w, ",") {
					return 0
				}
				if w < x.hi && x.s[w] == '.' && w-v <= 4 {
					w++
				}
				return x.direction(w)
			}
		}
		if !capital(x.s, v) && !ordinal(x.s[v:w]) {
			small++
		}
		v = w
		if v < x.hi && (x.s[v] == '.' || x.s[v] == '\'') && n < 3 {
			v++
			if v < x.hi && x.s[v-1] == '\'' {
				v = min(x.end(v, maxNameWord, isWord), x.hi)
			}
		}
		if v >= x.hi || x.s[v] != ' ' {
			return 0
		}
		v++
	}
	return 0
}

// isYear says whether the number at i is a year of this or the last century.
func (x *reader) isYear(i int) bool {
	return digitsFrom(x.s, i, 5) == 4 && (x.has(i, "19") || x.has(i, "20"))
}

// counted says whether the word before the number at i counts something else:
// a section, a version.
func (x *reader) counted(i int) bool {
	b, e := x.wordBefore(i, 3)
	var buf [24]byte
	switch string(smallCased(&buf, x.s[b:e])) {
	case "section", "chapter", "step", "table", "figure", "fig", "page", "version", "level", "part", "line", "phase", "episode", "season", "article",
		"rule", "item", "issue", "task", "day", "week", "error", "port", "stage", "round", "tier", "sprint", "release", "top", "option", "case", "scene", "act":
		return true
	}
	return false
}

// direction steps over "NW" and the like behind a street.
func (x *reader) direction(i int) int {
	if i < x.hi && x.s[i] == ' ' {
		e := min(x.end(i+1, 3, isUpper), x.hi)
		if !x.is(e, isWord) && !x.is(e, isDigit) {
			switch string(x.s[i+1 : e]) {
			case "N", "S", "E", "W", "NE", "NW", "SE", "SW":
				return e
			}
		}
	}
	return i
}

func ordinal(w []byte) bool {
	n := digitsFrom(w, 0, 4)
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
	w := min(x.end(v, maxNameWord, isWord), x.hi)
	var buf [24]byte
	if !frenchStreetWord(smallCased(&buf, x.s[v:w])) {
		return 0
	}
	end, caps := 0, 0
	for n := 0; n < 6 && w < x.hi && (x.s[w] == ' ' || x.s[w] == '\'' || x.s[w] == '-' || x.s[w] == '.'); n++ {
		b := w + 1
		w = min(x.end(b, maxNameWord, isWord), x.hi)
		if w == b {
			break
		}
		if capital(x.s, b) {
			caps++
			end = w
		} else if !smallFrench(x.s[b:w]) {
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
	if i-x.lo < 6 || x.s[i-1] != ' ' {
		return -1
	}
	e := i - 1
	dot := x.s[e-1] == '.'
	if dot {
		e--
	}
	b := e
	for b > x.lo && e-b < 40 && (class[x.s[b-1]]&isWord != 0 || x.s[b-1] == '-') {
		b--
	}
	if b >= e || !capital(x.s, b) && x.s[b] != 's' {
		return -1
	}
	switch alone, ok := germanStreet(x.s[b:e], dot); {
	case !ok:
		return -1
	case !alone:
		return b
	}
	// The word stands alone: the one before it belongs to it.
	start, at := -1, b
	for n := 0; n < 3 && at-1 > x.lo && x.s[at-1] == ' '; n++ {
		p := at - 1
		for p > x.lo && at-p < 24 && (class[x.s[p-1]]&isWord != 0 || x.s[p-1] == '-') {
			p--
		}
		if p == at-1 {
			break
		}
		if capital(x.s, p) {
			start = p
		} else if !smallGerman(x.s[p : at-1]) {
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
	if v < x.hi && x.s[v] == ',' {
		v++
	}
	if v = x.end(v, 2, isSpace); v == e || v >= x.hi {
		return -1
	}
	if x.has(v, "D-") {
		v += 2
	}
	if digitsFrom(x.s, v, 6) != 5 || !x.has(v+5, " ") || v+6 >= x.hi || !capital(x.s, v+6) {
		return -1
	}
	start, at := -1, i
	for n := 0; n < 4 && at-1 > x.lo && x.s[at-1] == ' '; n++ {
		p := at - 1
		for p > x.lo && at-p < 32 && (class[x.s[p-1]]&isWord != 0 || x.s[p-1] == '-' || x.s[p-1] == '.' && p == at-1) {
			p--
		}
		if p == at-1 {
			break
		}
		if capital(x.s, p) {
			start = p
		} else if !smallGerman(x.s[p : at-1]) {
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
		buf[k] = lower(c)
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
	return len(l) > 5 && l[len(l)-4:] == "ring" && l[len(l)-5] != 't' && l[len(l)-5] != 'd' && l[len(l)-5] != 's' && l[len(l)-5] != 'n' && l[len(l)-5] != '-'
}
