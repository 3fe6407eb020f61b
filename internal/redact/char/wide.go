package char

// wideStops are marks of full width that end a word in Chinese and Japanese text.
var wideStops = [...]string{"，", "。", "、", "；", "：", "」", "』", "）", "】", "》"}

// IsWideStop reports whether s begins with a mark of full width that ends a word.
func IsWideStop(s []byte) bool {
	if len(s) < 3 {
		return false
	}
	for _, stop := range wideStops {
		if string(s[:3]) == stop {
			return true
		}
	}
	return false
}

// WideQuoteLen returns the length of the opening quote of full width that s begins with, or 0.
func WideQuoteLen(s []byte) int {
	for _, quote := range [...]string{"「", "『"} {
		if len(s) >= len(quote) && string(s[:len(quote)]) == quote {
			return len(quote)
		}
	}
	return 0
}
