package guess

// announcement is how a word announces a name.
type announcement uint8

const (
	byNothing  announcement = iota
	byTitle                 // Mr, Dr: the name follows
	byGreeting              // Dear: likewise
	byHello                 // Hello: likewise, if it is a given name
	byVerb                  // "je m'appelle": likewise
	byIs                    // "my name": "is" and the name follow
	byAm                    // "I am", "this is": a given name follows
	byAuthor                // "signed by": the name follows
	byClosing               // "Regards": the name is the next line
)

// announces judges a word in small letters.
func announces(w []byte) announcement {
	if len(w) > 13 {
		return byNothing
	}
	switch string(w) {
	case "mr", "mrs", "ms", "mx", "dr", "prof", "professor", "mister", "miss", "sir", "dame", "lady", "lord", "herr", "herrn", "frau", "monsieur", "madame", "mme", "mlle",
		"señor", "señora", "sr", "sra", "signor", "signora", "doctor", "dhr", "mevr", "dott", "dipl", "senhor", "senhora", "capt", "sgt", "rev", "hon":
		return byTitle
	case "dear", "liebe", "lieber", "cher", "chère", "estimado", "estimada", "querido", "querida", "caro", "cara", "beste", "geachte":
		return byGreeting
	case "hi", "hello", "hey", "hallo", "bonjour", "hola", "ciao", "attn", "thanks", "thank":
		return byHello
	case "heiße", "heisse", "appelle", "llamo", "chiamo", "chamo":
		return byVerb
	case "name", "nom", "nombre", "nome", "naam":
		return byIs
	case "i", "this":
		return byAm
	case "by", "von", "par":
		return byAuthor
	case "regards", "sincerely", "cheers", "yours", "wishes", "truly", "faithfully", "best", "grüßen", "grüße", "gruß", "grüssen", "cordialement",
		"saludos", "atentamente", "saluti", "groeten":
		return byClosing
	}
	return byNothing
}

// didIt says whether a word before "by" is what a person does.
func didIt(w []byte) bool {
	var buf [24]byte
	switch string(smallCased(&buf, w)) {
	case "signed", "written", "authored", "approved", "reviewed", "prepared", "sent", "submitted", "reported", "requested", "edited", "translated",
		"countersigned", "witnessed", "drafted", "represented", "treated", "seen", "referred", "examined", "interviewed", "unterschrieben", "unterzeichnet",
		"verfasst", "signé", "rédigé", "firmado", "led", "managed", "completed", "filed", "taught", "created", "called", "answered", "raised", "handled":
		return true
	}
	return false
}

// isGiven says whether a word in small letters is one of the given names that
// are frequent in the English, German, French, Spanish, Italian, Dutch,
// Polish, Turkish, Arabic, Indian and East Asian world. It is a list of facts
// put down by hand, kept small on purpose.
func isGiven(w []byte) bool {
	lo, hi := 0, len(givenNames)
	for lo < hi {
		if mid := (lo + hi) / 2; givenNames[mid] < string(w) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(givenNames) && givenNames[lo] == string(w)
}

// ambiguous says whether a given name is a common word, a place or a make too:
// alone with another capital it tells nothing.
func ambiguous(w []byte) bool {
	switch string(w) {
	case "grace", "will", "mark", "may", "april", "june", "august", "jordan", "paris", "virginia", "victoria", "charlotte", "florence", "austin", "jackson",
		"lincoln", "hunter", "chase", "rose", "hope", "faith", "joy", "art", "bill", "frank", "grant", "rich", "pat", "sue", "drew", "miles", "dean",
		"earl", "duke", "jack", "christian", "israel", "chad", "georgia", "carolina", "sydney", "madison", "sierra", "santiago", "max", "rob", "ray",
		"dale", "glen", "ruby", "crystal", "amber", "dawn", "eve", "holly", "ivy", "lily", "olive", "penny", "summer", "autumn", "eden", "asia",
		"china", "india", "chelsea", "kent", "lance", "gene", "guy", "miguel", "san", "santa", "long", "jean", "ali", "an", "lee", "kim", "mercedes",
		"lexus", "per", "alexa", "siri", "claude", "devin", "jenkins", "julia", "ruth", "angel", "destiny", "major", "norman", "roman", "stone":
		return true
	}
	return false
}

// ambiguousOpening says whether a word cannot begin the name behind a title or
// a greeting.
func ambiguousOpening(w []byte) bool {
	switch string(w) {
	case "the", "a", "an", "all", "sir", "sirs", "madam", "customer", "customers", "team", "colleague", "colleagues", "friend", "friends", "editor", "user", "users",
		"valued", "support", "everyone", "everybody", "hiring", "reader", "readers", "members", "member", "candidate", "applicant", "santa", "god", "diary", "lord",
		"kolleginnen", "kollegen", "damen", "herren", "kunde", "kunden", "kundin", "freunde", "alle", "client", "clients", "tous", "amis", "equipo", "cliente", "who":
		return true
	}
	return false
}

// commonWord says whether a word in small letters is none of a name's: what
// follows a name in titles and headings, days, months, companies, places.
func commonWord(w []byte) bool {
	switch string(w) {
	case "team", "support", "service", "services", "inc", "ltd", "llc", "gmbh", "corp", "company", "group", "bank", "university", "college", "school", "institute",
		"street", "road", "avenue", "lane", "drive", "park", "square", "city", "county", "state", "north", "south", "east", "west", "hospital", "airport", "station",
		"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "january", "february", "march", "july", "september", "october",
		"november", "december", "montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag",
		"the", "and", "or", "of", "for", "in", "on", "at", "with", "from", "is", "are", "was", "were", "be", "it", "this", "that", "these", "those", "we", "you", "they", "he", "she",
		"please", "thanks", "thank", "your", "our", "my", "his", "her", "their", "not", "no", "yes", "if", "when", "then", "but", "as", "by", "to", "has", "have", "had",
		"server", "client", "user", "users", "admin", "root", "system", "test", "error", "warning", "info", "debug", "agent", "assistant", "notifications", "noreply", "reply",
		"api", "web", "app", "data", "database", "service-account", "bot", "build", "release", "version", "update", "report", "project", "manager", "engineering",
		"customer", "customers", "sales", "marketing", "finance", "security", "newsletter", "alerts", "billing", "department", "office", "desk", "help", "order", "invoice",
		"river", "beach", "mountain", "valley", "lake", "island", "hotel", "foundation", "prize", "award", "theorem", "algorithm", "method", "model", "museum", "cathedral",
		"code", "studio", "hub", "platform", "cloud", "framework", "language", "docs", "guide", "config", "file", "script", "engine", "library", "plugin", "module",
		"package", "class", "function", "tests", "bug", "fix", "feature", "event", "events", "meeting", "session", "page", "list", "table", "store", "plus", "pro", "beta",
		"sent", "subject", "date", "cc", "bcc", "re", "fwd", "sincerely", "regards", "best", "kind", "dear", "hello", "hi", "mr", "mrs", "ms", "dr", "prof", "herr", "frau",
		"http", "https", "json", "xml", "html", "sql", "null", "true", "false", "none", "unknown", "anonymous", "undefined", "n/a", "tbd", "todo", "string", "int", "here", "there":
		return true
	}
	return false
}

// isParticle says whether a word may stand inside a name without a capital.
func isParticle(w []byte) bool {
	switch string(w) {
	case "von", "van", "de", "der", "den", "del", "della", "di", "da", "dos", "das", "du", "la", "le", "el", "al", "bin", "ibn", "ben", "ter", "ten", "zu", "y":
		return true
	}
	return false
}
