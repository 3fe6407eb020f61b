package mapping

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// ways are those in which people, programs and models write a value in a text: as it is, escaped as in a string of
// JSON, of code, of a shell, of HTML or of a regular expression, and percent-encoded. They are made when they are
// needed first.
var ways = sync.OnceValue(func() []func(string) string {
	return []func(string) string{
		func(v string) string { return v },
		quoteJSON,
		func(v string) string { return quoteJSON(quoteJSON(v)) },
		url.QueryEscape,
		url.PathEscape,
		escapeComponent(),
		regexp.QuoteMeta,
		strings.NewReplacer(".", `\.`).Replace, // in a basic regular expression
		strings.NewReplacer(".", `\.`, "/", `\/`).Replace,
		strings.NewReplacer("/", `\/`).Replace,                                   // in JSON of some writers
		strings.NewReplacer(`'`, `\'`).Replace,                                   // in code
		strings.NewReplacer(`'`, `'\''`).Replace,                                 // in single quotes of a shell
		strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace, // in double quotes of a shell
		html.EscapeString,
		escapeBefore(`\.*[]^$/`),                 // in a pattern of sed
		escapeBefore(`\/&`),                      // in what sed writes in its place
		escapeBefore(`\.+*?()|[]{}^$/`),          // in a pattern between slashes
		escapeBefore(`\.+*?()|[]{}^$-#&~` + " "), // as re.escape of Python does
	}
})

// escapeBefore returns a function that writes a backslash before each of some characters.
func escapeBefore(characters string) func(string) string {
	var pairs []string
	for _, c := range characters {
		pairs = append(pairs, string(c), `\`+string(c))
	}
	return strings.NewReplacer(pairs...).Replace
}

// escapeComponent returns a function that percent-encodes as encodeURIComponent of JavaScript does.
func escapeComponent() func(string) string {
	keep := strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")
	return func(v string) string { return keep.Replace(url.QueryEscape(v)) }
}

// isInert reports whether a value is the same in every way of writing it.
func isInert(v string) bool {
	for i := range len(v) {
		if c := v[i]; !isLetter(c) && !isDigit(c) && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
