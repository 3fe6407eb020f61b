// Package lastline keeps a log from repeating itself.
package lastline

// Line is the last line that one place has logged, so that the same line is not logged
// at each try.
type Line struct{ line string }

// Replace keeps the line of what and err, and reports whether it is another than before.
func (l *Line) Replace(what string, err error) bool {
	line := what + err.Error()
	if line == l.line {
		return false
	}
	l.line = line
	return true
}
