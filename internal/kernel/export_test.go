package kernel

import "time"

// LookSeldom lets those who wait for an answer look by themselves once an hour: who
// is not told of it waits without end.
func (k *Kernel) LookSeldom() { k.Look = time.Hour }
