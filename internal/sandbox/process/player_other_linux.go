//go:build !amd64

package process

// playerCode: no player was written for this processor, and no zygote is
// started; workloads are parked one by one.
func playerCode() []byte { return nil }
