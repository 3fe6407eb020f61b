//go:build race

package constitution

import "time"

// boundTime is how long a rule that costs too much may take to be refused; the
// race detector makes it about ten times slower.
const boundTime = 30 * time.Second
