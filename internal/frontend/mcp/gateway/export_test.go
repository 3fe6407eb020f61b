package gateway

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Table is the kernel for the tests of package gateway_test.
type Table = table

func NewTable() *Table { return newTable() }

// SetRisk sets the risk of a boundary, as a person does.
func (k *table) SetRisk(boundary string, r holdfast.Risk) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.risks[boundary] = r
}

// ListContract writes a contract down, as a person does.
func (k *table) ListContract(c holdfast.Contract) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listed[c.Boundary] = c
}

// Approve lets the next call of a review pass.
func (k *table) Approve(review string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.approved[review] = true
}

func (k *table) Decide(review string, yes bool) { k.decide(review, yes) }

// Requests returns the requests of all crossings so far.
func (k *table) Requests() []holdfast.Request {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.requests
}

// LastOutput returns the output of the last act.
func (k *table) LastOutput() *holdfast.Output {
	k.mu.Lock()
	defer k.mu.Unlock()
	return &k.outputs[len(k.outputs)-1]
}

// WaitFor returns a configuration in which people decide on a page, within d.
func WaitFor(d time.Duration) func(*Config) { return waiting(d) }

var GoodToken = goodToken
