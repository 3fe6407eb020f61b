package guess

// streetKind is how surely a word is the last of a street's name.
type streetKind uint8

const (
	streetNone    streetKind = iota
	streetCapital            // where it has a capital
	streetAlways
)

func streetWord(w []byte) streetKind {
	var buf [24]byte
	switch string(smallCased(&buf, w)) {
	case "street", "road", "avenue", "boulevard", "crescent", "parkway", "terrace":
		return streetAlways
	case "st", "rd", "ave", "blvd", "lane", "ln", "drive", "dr", "court", "ct", "close", "cres", "way", "place", "pl", "square", "sq", "ter", "gardens",
		"gdns", "grove", "hill", "mews", "row", "walk", "pkwy", "highway", "hwy", "circle", "cir", "trail", "trl", "parade", "quay", "wharf", "broadway",
		"alley", "plaza", "loop", "green", "rise", "view", "vale", "yard":
		return streetCapital
	}
	return streetNone
}

// placeWord says whether a word for an address stands within 32 bytes before i.
func (x *reader) placeWord(i int) bool {
	floor := max(x.lo, i-32)
	for e := i; e > floor; {
		b, end := x.wordBefore(e, 3)
		if b == end {
			return false
		}
		var buf [24]byte
		switch string(smallCased(&buf, x.S[b:end])) {
		case "address", "addr", "live", "lives", "living", "lived", "at", "to", "deliver", "delivered", "ship", "shipped", "mail", "visit", "from", "resides", "residing",
			"home", "house", "moved", "located", "street", "adresse", "wohnt", "habite":
			return true
		}
		e = b
	}
	return false
}

// isState says whether w is a state or territory of the United States, as the
// Postal Service abbreviates it (Publication 28, appendix B).
func isState(w []byte) bool {
	switch string(w) {
	case "AL", "AK", "AZ", "AR", "CA", "CO", "CT", "DE", "FL", "GA", "HI", "ID", "IL", "IN", "IA", "KS", "KY", "LA", "ME", "MD", "MA", "MI", "MN", "MS",
		"MO", "MT", "NE", "NV", "NH", "NJ", "NM", "NY", "NC", "ND", "OH", "OK", "OR", "PA", "RI", "SC", "SD", "TN", "TX", "UT", "VT", "VA", "WA", "WV", "WI", "WY",
		"DC", "PR", "GU", "VI", "AS", "MP":
		return true
	}
	return false
}

// ukArea says whether w is one of the postcode areas of the United Kingdom.
func ukArea(w []byte) bool {
	switch string(w) {
	case "AB", "AL", "B", "BA", "BB", "BD", "BF", "BH", "BL", "BN", "BR", "BS", "BT", "CA", "CB", "CF", "CH", "CM", "CO", "CR", "CT", "CV", "CW", "DA", "DD", "DE",
		"DG", "DH", "DL", "DN", "DT", "DY", "E", "EC", "EH", "EN", "EX", "FK", "FY", "G", "GL", "GU", "GY", "HA", "HD", "HG", "HP", "HR", "HS", "HU", "HX", "IG",
		"IM", "IP", "IV", "JE", "KA", "KT", "KW", "KY", "L", "LA", "LD", "LE", "LL", "LN", "LS", "LU", "M", "ME", "MK", "ML", "N", "NE", "NG", "NN", "NP", "NR",
		"NW", "OL", "OX", "PA", "PE", "PH", "PL", "PO", "PR", "RG", "RH", "RM", "S", "SA", "SE", "SG", "SK", "SL", "SM", "SN", "SO", "SP", "SR", "SS", "ST", "SW",
		"SY", "TA", "TD", "TF", "TN", "TQ", "TR", "TS", "TW", "UB", "W", "WA", "WC", "WD", "WF", "WN", "WR", "WS", "WV", "YO", "ZE":
		return true
	}
	return false
}

// frenchStreetWord says whether a word in small letters begins the name of a
// French street.
func frenchStreetWord(w []byte) bool {
	switch string(w) {
	case "rue", "avenue", "av", "boulevard", "bd", "place", "allée", "allee", "chemin", "impasse", "quai", "cours", "route", "passage", "ruelle", "faubourg":
		return true
	}
	return false
}
