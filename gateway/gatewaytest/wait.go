package gatewaytest

import "time"

// Until polls a condition, and fails the test when it does not hold within 30 seconds.
func (h *House) Until(what string, cond func() bool) {
	h.T.Helper()
	h.UntilWithin(30*time.Second, what, cond)
}

// UntilWithin is Until with another limit.
func (h *House) UntilWithin(limit time.Duration, what string, cond func() bool) {
	h.T.Helper()
	deadline := time.Now().Add(limit)
	for !cond() {
		if time.Now().After(deadline) {
			h.T.Fatalf("gave up waiting until %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
