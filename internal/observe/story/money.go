package story

import "fmt"

// Dollars is an amount of millionths of a dollar as people read it, rounded up to a
// hundredth of a cent.
func Dollars(micro int64) string {
	if micro < 0 {
		return "less than nothing"
	}
	hundredths := micro/100 + min(1, micro%100)
	if hundredths%100 == 0 {
		return fmt.Sprintf("$%d.%02d", hundredths/10_000, hundredths/100%100)
	}
	return fmt.Sprintf("$%d.%04d", hundredths/10_000, hundredths%10_000)
}
