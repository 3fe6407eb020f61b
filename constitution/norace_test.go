//go:build !race

package constitution

import "time"

// boundTime is how long a rule that costs too much may take to be refused.
const boundTime = 3 * time.Second
